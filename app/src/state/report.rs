//! What the Reporting table is set to: filters, sort, columns and page, all in the URL, and what that asks of the view.

use super::columns;
use super::filters::{filter_conditions, read_filters, toggle, write_filters};
use super::limit::Limit;
use super::order::{Order, is_better_higher};
use super::query::{Query, as_of};
use super::window::CHUNK;

use crate::metrics::{self, DEFAULT_RESULT_COLUMNS};

/// The columns a reader can filter by.
pub const FILTERS: &[(&str, &str)] = &[
    ("status", "status"),
    ("project_code", "project"),
    ("workload_code", "workload"),
    ("run_number", "run"),
    ("scenario_code", "scenario"),
    ("model_code", "model"),
    ("framework_code", "framework"),
    ("framework_version", "version"),
    ("quantization", "quantization"),
    ("hostname", "server"),
    ("gpu_name", "gpu"),
    ("concurrency", "concurrency"),
    ("input_sequence_length", "isl"),
    ("output_sequence_length", "osl"),
    ("tool_code", "tool"),
    ("streaming", "streaming"),
    ("simulated", "simulated"),
    ("suspicious", "flagged"),
];

/// Results drawn in a chart at most.
pub const MOST_DRAWN: usize = 2000;

/// Rows on one page.
pub const PAGE_SIZE: usize = 50;

/// What a row of the table needs besides the columns that are shown: its key, its marks, and what cells are made of.
const ROW_NEEDS: [&str; 20] = [
    "job",
    "org",
    "project_code",
    "workload_code",
    "run_number",
    "scenario_code",
    "model_code",
    "framework_code",
    "framework_version",
    "config_code",
    "hostname",
    "gpu_name",
    "gpu_count",
    "status",
    "flags",
    "suspicious",
    "simulated",
    "imported",
    "requests_succeeded",
    "position",
];

/// What the Reporting table is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Column and value that rows must have. Several values of one column: any of them.
    pub filters: Vec<(String, String)>,
    /// Bounds on figures; all must hold.
    pub limits: Vec<Limit>,
    /// The first day (UTC, `2026-11-01`) on which a result may have ended; nothing for any.
    pub from: Option<String>,
    /// The last day.
    pub to: Option<String>,
    /// The column sorted by.
    pub sort: String,
    /// Whether the largest come first.
    pub descending: bool,
    /// The columns shown, in order.
    pub columns: Vec<String>,
    /// The page, from 1.
    pub page: usize,
    /// Whether all rows are shown in one long table instead of pages.
    pub long: bool,
    /// The position of the log as of which results are shown; nothing for now.
    pub as_of: Option<i64>,
}

/// What names a point of a chart.
const POINT_NEEDS: [&str; 16] = [
    "job",
    "org",
    "project_code",
    "workload_code",
    "run_number",
    "scenario_code",
    "model_code",
    "framework_code",
    "framework_version",
    "quantization",
    "config_code",
    "hostname",
    "gpu_name",
    "gpu_count",
    "parallelism",
    "replicas",
];

impl Default for Report {
    fn default() -> Self {
        Self {
            filters: Vec::new(),
            limits: Vec::new(),
            from: None,
            to: None,
            sort: "finished_at".to_owned(),
            descending: true,
            columns: DEFAULT_RESULT_COLUMNS.iter().map(|c| (*c).to_owned()).collect(),
            page: 1,
            long: false,
            as_of: None,
        }
    }
}

/// Whether a text is a day of the calendar: `2026-11-01`.
pub fn is_day(text: &str) -> bool {
    text.len() == 10 && crate::format::millis(&format!("{text}T00:00:00Z")).is_some()
}

impl Report {
    /// Reads the part of an address after the `?`. What is unknown is left out.
    pub fn read(query: &Query) -> Self {
        let mut report = Self { filters: read_filters(FILTERS, query), ..Self::default() };
        report.limits = Limit::read_all(query);
        let day = |key: &str| query.get(key).filter(|text| is_day(text)).map(str::to_owned);
        (report.from, report.to) = (day("ended-from"), day("ended-to"));
        let order = query.get("sort").map(Order::of_word);
        if let Some(order) = order.filter(|order| metrics::column(&order.key).is_some()) {
            (report.sort, report.descending) = (order.key, order.descending);
        }
        report.columns = columns::read(query, |key| metrics::column(key).is_some(), DEFAULT_RESULT_COLUMNS);
        report.page = query.get("page").and_then(|p| p.parse().ok()).filter(|p| *p > 0).unwrap_or(1);
        report.long = query.get("rows") == Some("all");
        report.as_of = as_of(query);
        report
    }

    /// Writes itself over the keys of a query that are its own; what is at its default is left out.
    pub fn write(&self, query: &mut Query) {
        let normal = Self::default();
        write_filters(FILTERS, &self.filters, query);
        Limit::write_all(&self.limits, query);
        query.set("ended-from", self.from.as_deref()).set("ended-to", self.to.as_deref());
        let order = Order { key: self.sort.clone(), descending: self.descending };
        let sorted = self.sort != normal.sort || self.descending != normal.descending;
        Order::write(sorted.then_some(&order), query);
        columns::write(&self.columns, DEFAULT_RESULT_COLUMNS, query);
        query.set("page", (self.page > 1).then(|| self.page.to_string()).as_deref());
        query.set("rows", self.long.then_some("all"));
        query.set("as-of", self.as_of.map(|p| p.to_string()).as_deref());
    }

    /// Sorts by a column: the better end first, the other on a second click.
    pub fn sort_by(&mut self, key: &str) {
        if self.sort == key {
            self.descending = !self.descending;
        } else {
            self.sort = key.to_owned();
            self.descending = is_better_higher(key) || key == "finished_at";
        }
        self.page = 1;
    }

    /// Adds a filter, or takes it away where it is set.
    pub fn toggle_filter(&mut self, column: &str, value: &str) {
        toggle(&mut self.filters, column, value);
        self.page = 1;
    }

    /// Takes a bound; another of the same end of the same figure gives way.
    pub fn limit(&mut self, limit: Limit) {
        self.limits.retain(|l| l.column != limit.column || l.at_least != limit.at_least);
        self.limits.push(limit);
        self.page = 1;
    }

    /// Whether rows are left out.
    pub fn narrows(&self) -> bool {
        !self.filters.is_empty() || !self.limits.is_empty() || self.from.is_some() || self.to.is_some()
    }

    /// Takes every filter and bound away.
    pub fn widen(&mut self) {
        self.filters.clear();
        self.limits.clear();
        (self.from, self.to) = (None, None);
        self.page = 1;
    }

    /// Shows a column, at its place in the catalogue, or hides it.
    pub fn toggle_column(&mut self, key: &str) {
        columns::toggle(&mut self.columns, key, metrics::place);
    }

    /// The filters in the view's dialect, without `?`: `status=eq.completed&model_code=in.("a","b")`.
    fn filtered(&self) -> Vec<String> {
        let mut conditions = filter_conditions(FILTERS, &self.filters);
        conditions.extend(self.limits.iter().map(Limit::condition));
        conditions.extend(self.from.iter().map(|day| format!("finished_at=gte.{day}T00:00:00Z")));
        conditions.extend(self.to.iter().map(|day| format!("finished_at=lte.{day}T23:59:59.999999Z")));
        conditions.extend(self.as_of.map(|position| format!("as_of={position}")));
        conditions
    }

    fn conditions(&self) -> Vec<String> {
        let mut conditions = self.filtered();
        let direction = if self.descending { "desc" } else { "asc" };
        conditions.push(format!("order={}.{direction}.nullslast,job.asc", self.sort));
        conditions
    }

    /// The request for this page of rows; in the long table for its first chunk.
    pub fn page_request(&self) -> String {
        if self.long {
            return self.chunk_request(0);
        }
        format!("{}&limit={PAGE_SIZE}&offset={}", self.rows_request(), (self.page - 1) * PAGE_SIZE)
    }

    /// The request for a chunk of the long table.
    pub fn chunk_request(&self, chunk: usize) -> String {
        format!("{}&limit={CHUNK}&offset={}", self.rows_request(), chunk * CHUNK)
    }

    /// The request for all rows, of each what the table shows and no more.
    pub fn rows_request(&self) -> String {
        let mut columns: Vec<&str> = ROW_NEEDS.to_vec();
        for column in self.columns.iter().map(String::as_str).chain([self.sort.as_str()]) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        format!("/api/v_benchmark_results?select={}&{}", columns.join(","), self.conditions().join("&"))
    }

    /// The request for what the charts draw: everything that is filtered, the newest first, as far as a chart can show it;
    /// of each result what names its point, and these figures.
    pub fn chart_request(&self, figures: &[&str]) -> String {
        let mut columns: Vec<&str> = POINT_NEEDS.to_vec();
        for figure in figures {
            if !columns.contains(figure) {
                columns.push(figure);
            }
        }
        let mut conditions = vec![format!("select={}", columns.join(","))];
        conditions.extend(self.filtered());
        conditions.push(format!("order=finished_at.desc.nullslast,job.asc&limit={MOST_DRAWN}"));
        format!("/api/v_benchmark_results?{}", conditions.join("&"))
    }

    /// The request for how many results there are as of the same position, whatever the filters.
    pub fn total_request(&self) -> String {
        let as_of = self.as_of.map(|position| format!("&as_of={position}")).unwrap_or_default();
        format!("/api/v_benchmark_results?select=job&limit=1{as_of}")
    }

    /// The request for everything that is filtered, for an export.
    pub fn export_request(&self) -> String {
        format!("/api/v_benchmark_results?{}", self.conditions().join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fresh_table_has_a_bare_address() {
        let mut query = Query::default();
        Report::default().write(&mut query);
        assert_eq!(query.write(), "");
    }

    #[test]
    fn what_comes_with_the_page_is_what_a_fresh_table_asks() {
        use events::first_page::{EVERYTHING, REPORTED};
        let report = Report::default();
        assert_eq!((REPORTED.path, REPORTED.counted), (report.page_request().as_str(), true));
        assert_eq!((EVERYTHING.path, EVERYTHING.counted), (report.total_request().as_str(), true));
    }

    #[test]
    fn the_view_is_asked_in_its_own_dialect() {
        let report =
            Report::read(&Query::parse("?status=completed&model=a/b&model=c&sort=ttft_p99_ms&page=2"));
        let request = report.page_request();
        let (selected, asked) = request.split_once('&').expect("conditions");
        assert!(selected.starts_with("/api/v_benchmark_results?select=job,"), "{selected}");
        assert_eq!(
            asked,
            "status=eq.completed&model_code=in.%28%22a/b%22%2C%22c%22%29\
             &order=ttft_p99_ms.asc.nullslast,job.asc&limit=50&offset=50"
        );
    }

    #[test]
    fn a_bound_takes_the_place_of_the_one_before() {
        let mut report = Report::read(&Query::parse("?max.ttft_p99_ms=500&min.ttft_p99_ms=5&page=3"));
        report.limit(Limit { column: "ttft_p99_ms".into(), at_least: false, value: 300.0 });
        assert!(
            report.page_request().contains("ttft_p99_ms=gte.5&ttft_p99_ms=lte.300&"),
            "{}",
            report.page_request()
        );
        assert_eq!(report.page, 1);
        report.widen();
        assert!(!report.narrows());
    }

    #[test]
    fn the_long_table_is_asked_for_in_chunks_of_what_it_shows() {
        let report =
            Report::read(&Query::parse("?rows=all&columns=workload_code,ttft_p99_ms&sort=-ttft_p50_ms"));
        let request = report.chunk_request(2);
        let end = ",ttft_p99_ms,ttft_p50_ms&order=ttft_p50_ms.desc.nullslast,job.asc&limit=50&offset=100";
        assert!(request.ends_with(end), "{request}");
        assert_eq!(report.page_request(), report.chunk_request(0));
    }

    #[test]
    fn the_past_is_asked_for_everywhere() {
        let report = Report::read(&Query::parse("?as-of=400&status=completed"));
        for request in [
            report.page_request(),
            report.export_request(),
            report.chart_request(&["ttft_p50_ms"]),
            report.total_request(),
        ] {
            assert!(request.contains("as_of=400"), "{request}");
        }
    }

    #[test]
    fn the_days_are_asked_for_whole_and_kept_in_the_address() {
        let mut report = Report::read(&Query::parse("?ended-from=2026-11-01&ended-to=2026-11-29"));
        for request in [report.page_request(), report.export_request(), report.chart_request(&[])] {
            for bound in
                ["finished_at=gte.2026-11-01T00:00:00Z", "finished_at=lte.2026-11-29T23:59:59.999999Z"]
            {
                assert!(request.contains(bound), "{request}");
            }
        }
        let mut query = Query::default();
        report.write(&mut query);
        assert_eq!(Report::read(&query), report);
        assert!(report.narrows());
        report.widen();
        assert_eq!(report, Report::default());
        assert_eq!(
            Report::read(&Query::parse("?ended-from=yesterday&ended-to=2026-13-01")),
            Report::default()
        );
    }

    #[test]
    fn the_first_click_sorts_the_better_end_first() {
        let mut report = Report::default();
        report.sort_by("output_tokens_per_second");
        assert!(report.descending);
        report.sort_by("ttft_p99_ms");
        assert!(!report.descending);
        report.sort_by("ttft_p99_ms");
        assert!(report.descending);
    }

    #[test]
    fn other_keys_of_the_address_stay() {
        let mut query = Query::parse("?drawer=proof&status=failed");
        Report::default().write(&mut query);
        assert_eq!(query.write(), "?drawer=proof");
    }

    proptest! {
        #[test]
        fn every_setting_survives_its_address(
            filters in proptest::collection::vec((0..FILTERS.len(), "\\PC{0,12}"), 0..5),
            sort in 0..metrics::RESULT_COLUMNS.len(),
            descending: bool,
            shown in proptest::collection::vec(0..metrics::RESULT_COLUMNS.len(), 1..6),
            page in 1usize..200,
            long: bool,
            as_of in proptest::option::of(1i64..1_000_000_000),
        ) {
            let mut report = Report { sort: metrics::RESULT_COLUMNS[sort].key.into(), descending, page, long, as_of, ..Report::default() };
            report.columns = shown.into_iter().map(|c| metrics::RESULT_COLUMNS[c].key.to_owned()).collect();
            // Filters are read back grouped by column, in the order of the list.
            let mut filters: Vec<(usize, String)> = filters;
            filters.sort_by_key(|(column, _)| *column);
            for (column, value) in filters {
                let filter = (FILTERS[column].0.to_owned(), value);
                if !report.filters.contains(&filter) {
                    report.filters.push(filter);
                }
            }
            let mut query = Query::default();
            report.write(&mut query);
            prop_assert_eq!(Report::read(&Query::parse(&query.write())), report);
        }
    }
}
