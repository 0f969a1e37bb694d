//! What the leaderboard is set to: category, filters, page, all in the URL, and what that asks of `v_leaderboard`. Who
//! stands where, the control plane decides: it ranks what the reader may see and the filters leave.

use super::filters::{filter_conditions, percent, read_filters, write_filters};
use super::query::Query;

/// What is ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category {
    /// Its word in the page's address; empty for the first.
    pub word: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// Its word in the view.
    pub category: &'static str,
    /// The figure that is ranked by.
    pub metric: &'static str,
    /// What is to be done where nothing qualifies.
    pub hint: &'static str,
}

/// The categories, in the order of their tabs.
pub const CATEGORIES: [Category; 4] = [
    Category {
        word: "",
        name: "Throughput",
        category: "throughput",
        metric: "output_tokens_per_second",
        hint: "complete a run on real hardware",
    },
    Category {
        word: "cost",
        name: "Cost efficiency",
        category: "cost_efficiency",
        metric: "output_tokens_per_usd",
        hint: "register servers with what they cost an hour, then complete a run",
    },
    Category {
        word: "quality",
        name: "Quality",
        category: "quality",
        metric: "quality_score",
        hint: "add a KYAI evaluation to a workload, or import its result",
    },
    Category {
        word: "energy",
        name: "Sustainability",
        category: "sustainability",
        metric: "output_tokens_per_joule",
        hint: "complete a run on a server whose GPU power can be read",
    },
];

/// The columns a reader can filter by.
pub const FILTERS: &[(&str, &str)] = &[
    ("project_code", "project"),
    ("model_code", "model"),
    ("framework_code", "framework"),
    ("framework_version", "version"),
    ("quantization", "quantization"),
    ("gpu_name", "gpu"),
    ("hostname", "server"),
    ("tool_code", "tool"),
    ("concurrency", "concurrency"),
];

/// Entries on one page.
pub const PAGE_SIZE: usize = 50;

/// What the leaderboard is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct Board {
    /// What is ranked by.
    pub category: Category,
    /// Column and value that entries must have. Several values of one column: any of them.
    pub filters: Vec<(String, String)>,
    /// Whether simulated runs are ranked, among themselves.
    pub simulated: bool,
    /// Whether doubted runs count too.
    pub flagged: bool,
    /// The page, from 1.
    pub page: usize,
    /// The position of the log as of which is ranked; nothing for now.
    pub as_of: Option<i64>,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            category: CATEGORIES[0],
            filters: Vec::new(),
            simulated: false,
            flagged: false,
            page: 1,
            as_of: None,
        }
    }
}

impl Board {
    /// Reads the part of an address after the `?`. What is unknown is left out.
    pub fn read(query: &Query) -> Self {
        let word = query.get("tab").unwrap_or_default();
        Self {
            category: CATEGORIES.iter().find(|c| c.word == word).copied().unwrap_or(CATEGORIES[0]),
            filters: read_filters(FILTERS, query),
            simulated: query.get("simulated") == Some("true"),
            flagged: query.get("flagged") == Some("true"),
            page: query.get("page").and_then(|p| p.parse().ok()).filter(|p| *p > 0).unwrap_or(1),
            as_of: query.get("as-of").and_then(|p| p.parse().ok()).filter(|p| *p > 0),
        }
    }

    /// Writes itself over its own keys; what is at its default is left out.
    pub fn write(&self, query: &mut Query) {
        write_filters(FILTERS, &self.filters, query);
        let yes = |is: bool| is.then_some("true");
        query
            .set("tab", (!self.category.word.is_empty()).then_some(self.category.word))
            .set("simulated", yes(self.simulated))
            .set("flagged", yes(self.flagged))
            .set("page", (self.page > 1).then(|| self.page.to_string()).as_deref())
            .set("as-of", self.as_of.map(|p| p.to_string()).as_deref());
    }

    fn ranked(&self) -> String {
        let doubted = if self.flagged { "&suspicious=is.true" } else { "" };
        let past = self.as_of.map(|position| format!("&as_of={position}")).unwrap_or_default();
        format!("category=eq.{}&simulated=is.{}{doubted}{past}", self.category.category, self.simulated)
    }

    /// The request for this page of entries.
    pub fn request(&self) -> String {
        let offset = (self.page - 1) * PAGE_SIZE;
        format!("{}&limit={PAGE_SIZE}&offset={offset}", self.export_request())
    }

    /// The request for every entry that is filtered, for an export.
    pub fn export_request(&self) -> String {
        let mut conditions = vec![self.ranked()];
        conditions.extend(filter_conditions(FILTERS, &self.filters));
        format!("/api/v_leaderboard?{}", conditions.join("&"))
    }

    /// The request for the best single result that ended before a moment (of all, where none is given): asked back from the
    /// newest record to the first, it tells who led when.
    pub fn record_request(&self, before: Option<&str>) -> String {
        let metric = self.category.metric;
        let mut conditions = vec![
            format!(
                "select=job,org,project_code,workload_code,run_number,scenario_code,model_code,finished_at,{metric}"
            ),
            format!(
                "status=eq.completed&simulated=is.{}&{metric}=not.is.null&finished_at=not.is.null",
                self.simulated
            ),
        ];
        if !self.flagged {
            conditions.push("suspicious=is.false".to_owned());
        }
        conditions.extend(filter_conditions(FILTERS, &self.filters));
        conditions.extend(before.map(|moment| format!("finished_at=lt.{}", percent(moment))));
        conditions.extend(self.as_of.map(|position| format!("as_of={position}")));
        format!(
            "/api/v_benchmark_results?{}&order={metric}.desc,finished_at.asc&limit=1",
            conditions.join("&")
        )
    }

    /// The request for the values there are to filter by.
    pub fn values_request(&self) -> String {
        let columns: Vec<&str> = FILTERS.iter().map(|(column, _)| *column).collect();
        format!("/api/v_leaderboard?{}&select={}&limit=5000", self.ranked(), columns.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fresh_board_has_a_bare_address_and_ranks_real_runs() {
        let mut query = Query::default();
        Board::default().write(&mut query);
        assert_eq!(query.write(), "");
        assert_eq!(
            Board::default().request(),
            "/api/v_leaderboard?category=eq.throughput&simulated=is.false&limit=50&offset=0"
        );
    }

    #[test]
    fn the_leaders_that_come_with_the_page_are_those_of_each_tab() {
        for (category, asked) in CATEGORIES.iter().zip(events::first_page::LEADERS) {
            assert_eq!(asked.path, format!("/api/v_leaderboard?category=eq.{}&limit=1", category.category));
        }
    }

    #[test]
    fn filters_category_and_page_are_asked_of_the_view() {
        let board =
            Board::read(&Query::parse("?tab=energy&model=a&model=b&simulated=true&flagged=true&page=3"));
        assert_eq!(
            board.request(),
            "/api/v_leaderboard?category=eq.sustainability&simulated=is.true&suspicious=is.true\
             &model_code=in.%28%22a%22%2C%22b%22%29&limit=50&offset=100"
        );
    }

    #[test]
    fn the_record_is_asked_for_backwards_under_the_same_filters() {
        let board = Board::read(&Query::parse("?tab=energy&model=a&as-of=40"));
        let request = board.record_request(Some("2026-11-29T20:41:07.409Z"));
        for part in [
            "simulated=is.false",
            "suspicious=is.false",
            "model_code=eq.a",
            "finished_at=lt.2026-11-29T20:41:07.409Z",
            "as_of=40",
            "order=output_tokens_per_joule.desc,finished_at.asc&limit=1",
        ] {
            assert!(request.contains(part), "{part} of {request}");
        }
    }

    proptest! {
        #[test]
        fn every_setting_survives_its_address(
            category in 0..CATEGORIES.len(),
            filters in proptest::collection::btree_set((0..FILTERS.len(), "\\PC{0,12}"), 0..5),
            simulated: bool,
            flagged: bool,
            page in 1usize..200,
            as_of in proptest::option::of(1i64..1_000_000_000),
        ) {
            // Filters are read back grouped by column, in the order of the list.
            let filters = filters.into_iter().map(|(column, value)| (FILTERS[column].0.to_owned(), value)).collect();
            let board = Board { category: CATEGORIES[category], filters, simulated, flagged, page, as_of };
            let mut query = Query::parse("?drawer=proof");
            board.write(&mut query);
            let query = Query::parse(&query.write());
            prop_assert_eq!(Board::read(&query), board);
            prop_assert_eq!(query.get("drawer"), Some("proof"));
        }
    }
}
