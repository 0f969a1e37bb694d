//! The topics of the live stream, as the control plane reads them: `<path>[:kind+kind]`.

/// Whether an event of this stream belongs to a topic: the path leads the stream's parts after its kind.
pub fn wants(topic: &str, stream: &str) -> bool {
    let (path, kinds) = topic.split_once(':').map_or((topic, ""), |(path, kinds)| (path, kinds));
    let Some((kind, rest)) = stream.split_once('/') else { return false };
    let under = rest.strip_prefix(path).is_some_and(|after| after.is_empty() || after.starts_with('/'));
    under && (kinds.is_empty() || kinds.split('+').any(|k| k == kind))
}

#[cfg(test)]
mod tests {
    use super::wants;

    #[test]
    fn a_path_leads_whole_parts() {
        assert!(wants("acme/p1/w1/3", "job/acme/p1/w1/3/c8"));
        assert!(wants("acme/p1/w1/3", "run/acme/p1/w1/3"));
        assert!(!wants("acme/p1/w1/3", "run/acme/p1/w1/30"));
    }

    #[test]
    fn kinds_narrow_a_topic() {
        assert!(wants("acme:job+run", "job/acme/p1/w1/3/c8"));
        assert!(!wants("acme:job+run", "telemetry/acme/p1/w1/3/c8/1"));
    }
}
