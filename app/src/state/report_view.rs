//! What the lower half of Reporting is set to, all in the address: the chart and its axes, its zoom, the results picked to
//! be compared, the pinned one.

use super::job_view::SOURCES;
use super::query::Query;
use super::zoom::Zoom;
use crate::charts::overlay::MEASURES;
use crate::metrics::{Column, Kind, RESULT_COLUMNS, column, metric};

/// The charts, by word in the address and name.
pub const TABS: [(&str, &str); 7] = [
    ("pareto", "Pareto"),
    ("concurrency", "Concurrency"),
    ("model", "Model"),
    ("framework", "Framework"),
    ("quantization", "Quantization"),
    ("hardware", "Hardware"),
    ("cost", "Cost"),
];

/// Results compared at once, at most.
pub const MOST_PICKED: usize = 6;

/// What the charts and the comparison are set to.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportView {
    /// The chart, by its word.
    pub tab: String,
    /// The metric across, for Pareto.
    pub x: String,
    /// The metric upwards, or the one compared.
    pub y: String,
    /// What is looked at; nothing for all.
    pub zoom: Option<Zoom>,
    /// The jobs picked, by path: `org/project/workload/run/scenario`.
    pub picked: Vec<String>,
    /// The one the others are compared with.
    pub pinned: Option<String>,
    /// Whether settings are shown that are the same everywhere.
    pub all_settings: bool,
    /// What of their telemetry is laid over each other, by its words in [`MEASURES`].
    pub over: String,
    /// The log stream in which the first two are compared; nothing for none.
    pub logs: Option<String>,
}

impl Default for ReportView {
    fn default() -> Self {
        Self {
            tab: TABS[0].0.to_owned(),
            x: "interactivity_tps".to_owned(),
            y: "output_tokens_per_second".to_owned(),
            zoom: None,
            picked: Vec::new(),
            pinned: None,
            all_settings: false,
            over: MEASURES[2].word.to_owned(),
            logs: None,
        }
    }
}

/// The metrics a chart can show.
pub fn chart_metrics() -> impl Iterator<Item = &'static Column> {
    RESULT_COLUMNS.iter().filter(|c| c.kind == Kind::Metric)
}

/// What the tab Cost compares: what tokens cost, what a dollar buys, what an hour makes.
static COSTS: [Column; 3] = [
    metric("cost_per_million_output_tokens_usd", "Cost"),
    metric("output_tokens_per_usd", "Per dollar"),
    metric(PER_HOUR, "Per hour"),
];

/// What the tab Hardware compares besides the figures of results: how much of the host was in use (of
/// `v_telemetry_job_summary`).
pub static IN_USE: [Column; 5] = [
    metric("avg_gpu_utilization", "GPU utilization"),
    metric("avg_gpu_memory_pct", "GPU memory"),
    metric("avg_cpu_utilization", "CPU"),
    metric("avg_system_ram_pct", "System RAM"),
    metric("avg_gpu_power_w", "GPU power"),
];

/// Output tokens an hour: the throughput times 3,600, worked out here.
pub const PER_HOUR: &str = "output_tokens_per_hour";

/// The metrics that a tab can compare.
pub fn metrics_of(tab: &str) -> Vec<&'static Column> {
    match tab {
        "cost" => COSTS.iter().collect(),
        "hardware" => IN_USE.iter().chain(chart_metrics()).collect(),
        _ => chart_metrics().collect(),
    }
}

/// The metric that a tab draws where this one is chosen: another tab may have been chosen with it.
pub fn drawn(tab: &str, chosen: &str) -> Option<&'static Column> {
    let all = metrics_of(tab);
    let otherwise = match tab {
        "cost" => all.first().copied(),
        _ => column("output_tokens_per_second"),
    };
    all.into_iter().find(|c| c.key == chosen).or(otherwise)
}

/// The figure of a result that explains a metric of a chart: what an hour makes follows from its throughput.
pub fn explained(metric: &'static str) -> &'static str {
    if metric == PER_HOUR { "output_tokens_per_second" } else { metric }
}

impl ReportView {
    /// Reads the part of an address after the `?`. What is unknown is left out.
    pub fn read(query: &Query) -> Self {
        let normal = Self::default();
        let metric = |key: &str, otherwise: &str| {
            let own = |k: &str| COSTS.iter().chain(&IN_USE).any(|c| c.key == k);
            let known = |k: &&str| column(k).is_some_and(|c| c.kind == Kind::Metric) || own(k);
            query.get(key).filter(known).unwrap_or(otherwise).to_owned()
        };
        let mut picked: Vec<String> = Vec::new();
        for job in query.all("pick").filter(|job| !job.is_empty()) {
            if picked.len() < MOST_PICKED && !picked.iter().any(|p| p == job) {
                picked.push(job.to_owned());
            }
        }
        Self {
            tab: query
                .get("tab")
                .filter(|tab| TABS.iter().any(|(word, _)| word == tab))
                .map_or(normal.tab, str::to_owned),
            x: metric("x", &normal.x),
            y: metric("y", &normal.y),
            zoom: query.get("zoom").and_then(Zoom::read),
            picked,
            pinned: query.get("pin").filter(|job| !job.is_empty()).map(str::to_owned),
            all_settings: query.get("settings") == Some("all"),
            over: query
                .get("over")
                .filter(|word| MEASURES.iter().any(|m| m.word == *word))
                .map_or(normal.over, str::to_owned),
            logs: query
                .get("logs")
                .filter(|log| SOURCES.iter().any(|(code, _)| code == log))
                .map(str::to_owned),
        }
    }

    /// Writes itself over its own keys; what is at its default is left out.
    pub fn write(&self, query: &mut Query) {
        let normal = Self::default();
        query.set("tab", (self.tab != normal.tab).then_some(self.tab.as_str()));
        query.set("x", (self.x != normal.x).then_some(self.x.as_str()));
        query.set("y", (self.y != normal.y).then_some(self.y.as_str()));
        query.set("zoom", self.zoom.as_ref().map(Zoom::write).as_deref());
        query.set("pick", None);
        for job in &self.picked {
            query.push("pick", job);
        }
        query.set("pin", self.pinned.as_deref());
        query.set("settings", self.all_settings.then_some("all"));
        query.set("over", (self.over != normal.over).then_some(self.over.as_str()));
        query.set("logs", self.logs.as_deref());
    }

    /// Picks a job, or lets it go; the oldest pick gives way where there are too many.
    pub fn toggle(&mut self, job: &str) {
        let before = self.picked.len();
        self.picked.retain(|picked| picked != job);
        if self.picked.len() == before {
            if self.picked.len() == MOST_PICKED {
                self.picked.remove(0);
            }
            self.picked.push(job.to_owned());
        }
    }

    /// Picks a job, or lets it go; given the order of a list, everything from the last pick to it.
    pub fn pick(&mut self, job: &str, order: Option<&[String]>) {
        let place = |wanted: &str| order.into_iter().flatten().position(|j| j == wanted);
        match (self.picked.last().and_then(|last| place(last)), place(job)) {
            (Some(from), Some(to)) => {
                for job in &order.unwrap_or_default()[from.min(to)..=from.max(to)] {
                    if !self.picked.contains(job) {
                        self.toggle(job);
                    }
                }
            }
            _ => self.toggle(job),
        }
    }

    /// Pins a job, or lets it go.
    pub fn pin(&mut self, job: &str) {
        self.pinned = (self.pinned.as_deref() != Some(job)).then(|| job.to_owned());
    }

    /// The jobs compared, the pinned one first.
    pub fn compared(&self) -> Vec<String> {
        let mut compared = self.picked.clone();
        if let Some(pinned) = &self.pinned {
            compared.retain(|job| job != pinned);
            compared.insert(0, pinned.clone());
        }
        compared
    }

    /// Another chart: another zoom.
    pub fn show(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.zoom = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Report;
    use super::super::zoom::tests::zooms;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fresh_report_has_a_bare_address() {
        let mut query = Query::default();
        ReportView::default().write(&mut query);
        assert_eq!(query.write(), "");
    }

    #[test]
    fn each_tab_draws_a_metric_of_its_own_and_the_address_keeps_it() {
        assert_eq!(drawn("cost", "ttft_p50_ms").map(|c| c.key), Some("cost_per_million_output_tokens_usd"));
        assert_eq!(drawn("cost", PER_HOUR).map(|c| c.key), Some(PER_HOUR));
        assert_eq!(drawn("hardware", "avg_cpu_utilization").map(|c| c.key), Some("avg_cpu_utilization"));
        assert_eq!(drawn("model", PER_HOUR).map(|c| c.key), Some("output_tokens_per_second"));
        for column in COSTS.iter().chain(&IN_USE) {
            assert!(!column.definition().is_empty(), "{} is not in the catalogue", column.key);
        }
        let query = Query::parse(&format!("?tab=cost&y={PER_HOUR}"));
        assert_eq!(ReportView::read(&query).y, PER_HOUR);
        assert_eq!(explained(PER_HOUR), "output_tokens_per_second");
    }

    #[test]
    fn the_pinned_result_stands_first() {
        let mut view = ReportView::default();
        view.toggle("a");
        view.toggle("b");
        view.pin("b");
        assert_eq!(view.compared(), ["b", "a"]);
        view.pin("c");
        assert_eq!(view.compared(), ["c", "a", "b"]);
        view.pin("c");
        view.toggle("a");
        assert_eq!(view.compared(), ["b"]);
    }

    #[test]
    fn a_stretch_is_picked_from_the_last_pick_in_either_direction() {
        let order = ["a", "b", "c", "d"].map(str::to_owned);
        let mut view = ReportView::default();
        view.pick("c", Some(&order));
        view.pick("a", Some(&order));
        assert_eq!(view.picked, ["c", "a", "b"]);
        view.pick("a", None);
        assert_eq!(view.picked, ["c", "b"]);
    }

    #[test]
    fn a_seventh_pick_lets_the_first_go() {
        let mut view = ReportView::default();
        for job in ["a", "b", "c", "d", "e", "f", "g"] {
            view.toggle(job);
        }
        assert_eq!(view.picked, ["b", "c", "d", "e", "f", "g"]);
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let view = ReportView::read(&Query::parse("?tab=pie&x=status&y=nothing&pick=&pick=a&pick=a&zoom=9"));
        assert_eq!(view, ReportView { picked: vec!["a".into()], ..ReportView::default() });
    }

    proptest! {
        #[test]
        fn every_setting_survives_its_address_beside_the_tables(
            tab in 0..TABS.len(),
            x in 0..chart_metrics().count(),
            y in 0..chart_metrics().count(),
            zoom in proptest::option::of(zooms()),
            picked in proptest::collection::btree_set("\\PC{1,12}", 0..MOST_PICKED),
            pinned in proptest::option::of("\\PC{1,12}"),
            all_settings in proptest::bool::ANY,
            over in 0..MEASURES.len(),
            logs in proptest::option::of(0..SOURCES.len()),
            page in 1usize..9,
        ) {
            let metric = |place: usize| chart_metrics().nth(place).expect("a metric").key.to_owned();
            let view = ReportView {
                tab: TABS[tab].0.to_owned(), x: metric(x), y: metric(y), zoom,
                picked: picked.into_iter().collect(), pinned, all_settings, over: MEASURES[over].word.to_owned(),
                logs: logs.map(|n| SOURCES[n].0.to_owned()),
            };
            let table = Report { page, ..Report::default() };
            let mut query = Query::default();
            table.write(&mut query);
            view.write(&mut query);
            let query = Query::parse(&query.write());
            prop_assert_eq!(ReportView::read(&query), view);
            prop_assert_eq!(Report::read(&query), table);
        }
    }
}
