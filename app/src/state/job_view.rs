//! What a job's page is set to, all in the address: the stretch of time, the log stream, what is looked for in it.

use super::query::{Query, as_of};
use super::zoom::Zoom;

/// The log streams, as the agent names them, and their words.
pub const SOURCES: [(&str, &str); 3] = [("framework", "Framework"), ("tool", "Tool"), ("agent", "Agent")];

/// What a job's page is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    /// The seconds that the charts show; nothing for all.
    pub zoom: Option<Zoom>,
    /// The log stream.
    pub log: String,
    /// What is looked for in the log.
    pub search: String,
    /// The first of the requests that the waterfall shows, counted in the order in which they were sent.
    pub requests: usize,
    /// The position of the log as of which the job is shown; nothing for now.
    pub as_of: Option<i64>,
}

impl Default for JobView {
    fn default() -> Self {
        Self { zoom: None, log: SOURCES[0].0.to_owned(), search: String::new(), requests: 0, as_of: None }
    }
}

impl JobView {
    /// Reads the part of an address after the `?`. What is unknown is left out.
    pub fn read(query: &Query) -> Self {
        let normal = Self::default();
        let known = |log: &&str| SOURCES.iter().any(|(code, _)| code == log);
        Self {
            zoom: query.get("zoom").and_then(Zoom::read),
            log: query.get("log").filter(known).map_or(normal.log, str::to_owned),
            search: query.get("search").unwrap_or_default().to_owned(),
            requests: query.get("requests").and_then(|n| n.parse().ok()).unwrap_or(0),
            as_of: as_of(query),
        }
    }

    /// Writes itself over its own keys; what is at its default is left out.
    pub fn write(&self, query: &mut Query) {
        let normal = Self::default();
        query.set("zoom", self.zoom.as_ref().map(Zoom::write).as_deref());
        query.set("log", (self.log != normal.log).then_some(self.log.as_str()));
        query.set("search", (!self.search.is_empty()).then_some(self.search.as_str()));
        query.set("as-of", self.as_of.map(|position| position.to_string()).as_deref());
        query.set("requests", (self.requests > 0).then(|| self.requests.to_string()).as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::super::zoom::tests::zooms;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fresh_page_has_a_bare_address() {
        let mut query = Query::default();
        JobView::default().write(&mut query);
        assert_eq!(query.write(), "");
    }

    proptest! {
        #[test]
        fn every_setting_survives_its_address(
            zoom in proptest::option::of(zooms()),
            log in 0..SOURCES.len(),
            search in "\\PC{0,20}",
            requests in 0usize..2_000_000,
            as_of in proptest::option::of(1i64..1_000_000_000),
        ) {
            let view = JobView { zoom, log: SOURCES[log].0.to_owned(), search, requests, as_of };
            let mut query = Query::parse("?drawer=proof&job=a/b");
            view.write(&mut query);
            let query = Query::parse(&query.write());
            prop_assert_eq!(JobView::read(&query), view);
            prop_assert_eq!(query.get("drawer"), Some("proof"));
        }
    }
}
