//! TPU chips, with a stand-in for the metrics service of Google's TPU runtime library: it speaks the real one's gRPC, and
//! its values are made up. No real chip was at hand.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use events::report::ReportBody;
use events::telemetry::TpuSample;
use http::{HeaderMap, HeaderValue, Response};
use prost::Message;
use tokio::net::TcpListener;

use crate::support::agent::Agent;
use crate::support::control_plane::ControlPlane;
use crate::support::jobs::{endpoint_job, tool};

/// The messages as `tpu_metric_service.proto` has them, as far as they are used here.
mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct MetricRequest {
        #[prost(string, tag = "1")]
        pub metric_name: String,
        #[prost(bool, tag = "2")]
        pub skip_node_aggregation: bool,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct MetricResponse {
        #[prost(message, optional, tag = "1")]
        pub metric: Option<TpuMetric>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TpuMetric {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(string, tag = "2")]
        pub description: String,
        #[prost(message, repeated, tag = "3")]
        pub metrics: Vec<Metric>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Metric {
        #[prost(message, optional, tag = "1")]
        pub attribute: Option<Attribute>,
        #[prost(oneof = "Measure", tags = "3")]
        pub measure: Option<Measure>,
    }
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Measure {
        #[prost(message, tag = "3")]
        Gauge(Gauge),
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Attribute {
        #[prost(string, tag = "1")]
        pub key: String,
        #[prost(message, optional, tag = "2")]
        pub value: Option<AttrValue>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct AttrValue {
        #[prost(oneof = "Attr", tags = "3")]
        pub attr: Option<Attr>,
    }
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Attr {
        #[prost(int64, tag = "3")]
        Int(i64),
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Gauge {
        #[prost(oneof = "Value", tags = "1, 2")]
        pub value: Option<Value>,
    }
    #[derive(Clone, Copy, PartialEq, prost::Oneof)]
    pub enum Value {
        #[prost(double, tag = "1")]
        Double(f64),
        #[prost(int64, tag = "2")]
        Int(i64),
    }
}

use proto::{
    Attr, AttrValue, Attribute, Gauge, Measure, Metric, MetricRequest, MetricResponse, TpuMetric, Value,
};

type Values = BTreeMap<&'static str, Vec<Value>>;

fn metric(device: usize, value: Value) -> Metric {
    let attr = AttrValue { attr: Some(Attr::Int(device as i64)) };
    Metric {
        attribute: Some(Attribute { key: "device-id".into(), value: Some(attr) }),
        measure: Some(Measure::Gauge(Gauge { value: Some(value) })),
    }
}

fn answer(request: &[u8], values: &Values) -> Option<Vec<u8>> {
    let asked = MetricRequest::decode(&request[5..]).ok()?;
    let values = values.get(asked.metric_name.as_str())?;
    // In no order, as a map is iterated.
    let metrics = values.iter().enumerate().rev().map(|(device, value)| metric(device, *value)).collect();
    let found = TpuMetric { name: asked.metric_name, description: String::new(), metrics };
    let message = MetricResponse { metric: Some(found) }.encode_to_vec();
    Some([&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat())
}

/// Serves these values; metrics that are not among them are NOT_FOUND.
async fn standin(values: Values) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, values.clone()));
        }
    });
    address
}

async fn serve(socket: tokio::net::TcpStream, values: Values) {
    let mut connection = h2::server::handshake(socket).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!(request.uri().path(), "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        let values = values.clone();
        tokio::spawn(async move {
            let mut body = request.into_body();
            let mut read = Vec::new();
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
                read.extend_from_slice(&data);
            }
            let head = Response::builder().header("content-type", "application/grpc");
            match answer(&read, &values) {
                Some(message) => {
                    let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
                    stream.send_data(Bytes::from(message), false).unwrap();
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", HeaderValue::from_static("0"));
                    stream.send_trailers(trailers).unwrap();
                }
                None => {
                    let head = head.header("grpc-status", "5").body(()).unwrap();
                    respond.send_response(head, true).unwrap();
                }
            }
        });
    }
}

/// Runs a job on a host with these chips; gives the first sample of them.
async fn measured(values: Values) -> Vec<TpuSample> {
    let plane = ControlPlane::start().await;
    let address = standin(values).await;
    let mut agent = Agent::enrolled(&plane, &tool("sleep 0.5; summary"), "").await;
    agent.set_env("BENCHTRAIL_LIBTPU_ADDRESS", &address.to_string());
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("completed").await;
    let ReportBody::Telemetry { telemetry, .. } = plane.until_reported("telemetry").await.body else {
        panic!()
    };
    telemetry.samples[0].tpus.clone()
}

#[tokio::test]
async fn chips_are_reported_in_percent_and_bytes_and_what_the_service_does_not_tell_is_absent() {
    let values = Values::from([
        ("tpu.runtime.tensorcore.dutycycle.percent", vec![Value::Double(97.5), Value::Double(12.25)]),
        ("tpu.runtime.hbm.memory.usage.bytes", vec![Value::Int(9_000_000_000), Value::Int(1_000_000_000)]),
    ]);
    let chip = |chip, duty, used| TpuSample {
        chip,
        duty_cycle_pct: Some(duty),
        tensor_core_utilization_pct: None,
        hbm_used_bytes: Some(used),
        hbm_total_bytes: None,
    };
    assert_eq!(measured(values).await, [chip(0, 97.5, 9_000_000_000), chip(1, 12.25, 1_000_000_000)]);
}

#[tokio::test]
async fn a_host_whose_runtime_says_nothing_has_no_chips() {
    assert_eq!(measured(Values::new()).await, vec![]);
}
