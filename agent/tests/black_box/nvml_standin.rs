//! A STAND-IN for NVIDIA's management library, for the agent's tests only: the real library's ABI, made-up GPUs.
//!
//! Compiled by a test into a shared library of its own. `NVML_STANDIN_VALUES` names a file of lines `key value`:
//! `gpus`, `driver`, `power_mw`, `limit_mw`, `utilization_percent`, `memory_total`, `memory_used`, `temperature_c`,
//! `sm_clock_mhz`; a key may be `gpu1.power_mw` for one GPU alone. A key without a line is not supported.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

const SUCCESS: c_int = 0;
const INVALID_ARGUMENT: c_int = 2;
const NOT_SUPPORTED: c_int = 3;

fn value(gpu: Option<usize>, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(std::env::var_os("NVML_STANDIN_VALUES")?).ok()?;
    let find = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            (name == wanted).then(|| value.to_owned())
        })
    };
    gpu.and_then(|gpu| find(&format!("gpu{gpu}.{key}"))).or_else(|| find(key))
}

/// Handles are the GPU's index and one, so that none is null.
fn index(device: *mut c_void) -> usize {
    device as usize - 1
}

unsafe fn number<T: std::str::FromStr>(device: *mut c_void, key: &str, to: *mut T) -> c_int {
    match value(Some(index(device)), key).and_then(|text| text.parse().ok()) {
        Some(number) => {
            unsafe { to.write(number) };
            SUCCESS
        }
        None => NOT_SUPPORTED,
    }
}

unsafe fn text(from: Option<String>, to: *mut c_char, room: c_uint) -> c_int {
    let Some(from) = from else { return NOT_SUPPORTED };
    if from.len() + 1 > room as usize {
        return 7;
    }
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr().cast(), to, from.len());
        to.add(from.len()).write(0);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(_code: c_int) -> *const c_char {
    c"an error of the stand-in".as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) -> c_int {
    unsafe { text(value(None, "driver"), to, room) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> c_int {
    let count = value(None, "gpus").and_then(|text| text.parse().ok()).unwrap_or(0);
    unsafe { to.write(count) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(gpu: c_uint, to: *mut *mut c_void) -> c_int {
    if value(Some(gpu as usize), "lost").is_some() {
        return INVALID_ARGUMENT;
    }
    unsafe { to.write((gpu as usize + 1) as *mut c_void) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: *mut c_void, to: *mut c_char, room: c_uint) -> c_int {
    unsafe { text(value(Some(index(device)), "name"), to, room) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: *mut c_void, to: *mut c_uint) -> c_int {
    unsafe { number(device, "power_mw", to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: *mut c_void, to: *mut c_uint) -> c_int {
    unsafe { number(device, "limit_mw", to) }
}

/// `nvmlUtilization_t`.
#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: *mut c_void, to: *mut Utilization) -> c_int {
    let mut gpu = 0;
    let code = unsafe { number(device, "utilization_percent", &mut gpu) };
    if code == SUCCESS {
        unsafe { to.write(Utilization { gpu, memory: 1 }) };
    }
    code
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: *mut c_void, to: *mut Memory) -> c_int {
    // As the real one: the caller says which version of the structure it means.
    let version = unsafe { (*to).version };
    if version != (size_of::<Memory>() as c_uint | 2 << 24) {
        return INVALID_ARGUMENT;
    }
    let (mut total, mut used) = (0, 0);
    let codes =
        unsafe { [number(device, "memory_total", &mut total), number(device, "memory_used", &mut used)] };
    if codes != [SUCCESS; 2] {
        return NOT_SUPPORTED;
    }
    unsafe { to.write(Memory { version, total, reserved: 7, free: total - used, used }) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(
    device: *mut c_void,
    _sensor: c_uint,
    to: *mut c_uint,
) -> c_int {
    unsafe { number(device, "temperature_c", to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(
    device: *mut c_void,
    clock: c_uint,
    to: *mut c_uint,
) -> c_int {
    const SM: c_uint = 1;
    if clock != SM {
        return INVALID_ARGUMENT;
    }
    unsafe { number(device, "sm_clock_mhz", to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCudaComputeCapability(
    _device: *mut c_void,
    major: *mut c_int,
    minor: *mut c_int,
) -> c_int {
    unsafe {
        major.write(9);
        minor.write(0);
    }
    SUCCESS
}
