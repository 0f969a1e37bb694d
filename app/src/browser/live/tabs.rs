//! The other tabs of this browser: a channel to talk to them, and the lock that one of them holds.

use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::prelude::*;

use crate::state::tabs::Message;

const NAME: &str = "benchtrail-live";

/// The channel to the other tabs; it closes when dropped.
pub struct Channel {
    channel: web_sys::BroadcastChannel,
    _heard: Closure<dyn FnMut(web_sys::MessageEvent)>,
}

impl Channel {
    /// Opens the channel; nothing where the browser has none.
    pub fn open(mut heard: impl FnMut(Message) + 'static) -> Option<Self> {
        let channel = web_sys::BroadcastChannel::new(NAME).ok()?;
        let closure =
            Closure::<dyn FnMut(web_sys::MessageEvent)>::new(move |event: web_sys::MessageEvent| {
                let message = event.data().as_string().and_then(|text| Message::read(&text));
                if let Some(message) = message {
                    heard(message);
                }
            });
        channel.set_onmessage(Some(closure.as_ref().unchecked_ref()));
        Some(Self { channel, _heard: closure })
    }

    /// Says something to every other tab.
    pub fn say(&self, message: &Message) {
        let _ = self.channel.post_message(&message.write().into());
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.channel.set_onmessage(None);
        self.channel.close();
    }
}

/// Asks to lead; `leading` is called once the lock is this tab's, which it then keeps until it closes.
/// False where the browser has no locks (they need a secure context): each tab is then on its own.
pub fn ask_to_lead(leading: impl FnOnce() + 'static) -> bool {
    let navigator: JsValue = leptos::prelude::window().navigator().into();
    let Ok(locks) = Reflect::get(&navigator, &"locks".into()) else { return false };
    let Some(request) =
        Reflect::get(&locks, &"request".into()).ok().and_then(|f| f.dyn_into::<Function>().ok())
    else {
        return false;
    };
    let granted = Closure::once_into_js(move |_lock: JsValue| -> Promise {
        leading();
        // Never settled: the lock is held as long as the tab lives.
        Promise::new(&mut |_, _| {})
    });
    request.call2(&locks, &NAME.into(), &granted).is_ok()
}
