//! Laying a batch out as few appends as its order allows.

use events::StreamKey;
use events::envelope::NewEvent;

use crate::log::{AppendRequest, Expected, StreamWrite};

/// The appends of a batch, in order.
#[derive(Debug)]
pub(super) struct Requests {
    one_by_one: bool,
    requests: Vec<Vec<Write>>,
}

#[derive(Debug)]
struct Write {
    write: StreamWrite,
    /// Whether the order among the streams matters: telemetry beside logs has none, a job's own events have.
    ordered: bool,
    /// Which items of the batch its events are.
    indices: Vec<usize>,
}

impl Requests {
    /// None yet. `one_by_one` gives every event an append of its own.
    pub fn new(one_by_one: bool) -> Self {
        Self { one_by_one, requests: Vec::new() }
    }

    /// Adds the event of item `index`. `expected` is what is believed of the stream just before it; `ordered` says that it
    /// stays in its place among the events of other streams.
    pub fn push(
        &mut self,
        stream: StreamKey,
        expected: Expected,
        ordered: bool,
        event: NewEvent,
        index: usize,
    ) {
        if let Some(last) = self.requests.last_mut().filter(|_| !self.one_by_one) {
            match last.iter().position(|write| write.write.stream == stream) {
                // A stream occurs once in a request: its later events stand with its earlier ones, which is right
                // unless something ordered lies between.
                Some(at) => {
                    let between = &last[at + 1..];
                    if between.is_empty() || (!ordered && !between.iter().any(|write| write.ordered)) {
                        last[at].write.events.push(event);
                        last[at].indices.push(index);
                        return;
                    }
                }
                None => {
                    last.push(Write::of(stream, expected, ordered, event, index));
                    return;
                }
            }
        }
        self.requests.push(vec![Write::of(stream, expected, ordered, event, index)]);
    }

    /// The appends, each with the items its events are, in the order of its events.
    pub fn finish(self) -> impl Iterator<Item = (AppendRequest, Vec<usize>)> {
        self.requests.into_iter().map(|writes| {
            let indices = writes.iter().flat_map(|write| write.indices.iter().copied()).collect();
            (AppendRequest { writes: writes.into_iter().map(|write| write.write).collect() }, indices)
        })
    }
}

impl Write {
    fn of(stream: StreamKey, expected: Expected, ordered: bool, event: NewEvent, index: usize) -> Self {
        Self { write: StreamWrite { stream, expected, events: vec![event] }, ordered, indices: vec![index] }
    }
}

#[cfg(test)]
mod tests {
    use events::canonical::CanonicalJson;
    use events::envelope::{Actor, ActorKind};
    use events::timestamp::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn event() -> NewEvent {
        NewEvent {
            event_id: Uuid::now_v7(),
            event_type: "job.running".into(),
            schema_version: 1,
            org: "acme".into(),
            actor: Actor { kind: ActorKind::Agent, id: "a".into() },
            causation_id: None,
            correlation_id: None,
            occurred_at: Timestamp::EPOCH,
            payload: CanonicalJson::parse("{}").unwrap(),
        }
    }

    /// Lays out a batch of `t`elemetry, `l`ogs and the `j`ob's own events; gives each append's items.
    fn layout(batch: &str, one_by_one: bool) -> Vec<Vec<usize>> {
        let mut requests = Requests::new(one_by_one);
        let mut version = 3;
        for (index, kind) in batch.chars().enumerate() {
            let (stream, expected) = match kind {
                'j' => ("job", Expected::Exact(version)),
                't' => ("telemetry", Expected::Exact(version)),
                _ => ("logs", Expected::Any),
            };
            version += i64::from(kind != 'l');
            requests.push(StreamKey::new(stream, &["acme", "x"]), expected, kind == 'j', event(), index);
        }
        requests.finish().map(|(_, indices)| indices).collect()
    }

    #[test]
    fn telemetry_and_logs_share_one_append_however_they_are_mixed() {
        assert_eq!(layout("tltlt", false), [vec![0, 2, 4, 1, 3]]);
    }

    #[test]
    fn nothing_moves_across_an_event_of_the_job() {
        assert_eq!(layout("ttjtt", false), [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(layout("jtj", false), [vec![0, 1], vec![2]]);
        assert_eq!(layout("tljj", false), [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn one_by_one_is_one_by_one() {
        assert_eq!(layout("ttj", true), [vec![0], vec![1], vec![2]]);
    }
}
