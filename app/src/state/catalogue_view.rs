//! What the catalogue is set to, all in the URL: the list, what is looked for in it, the entry that is open, the two sets
//! of engine arguments that are compared; and what that asks of the views.

use super::filters::percent;
use super::query::Query;

/// A list of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    /// Its word in the address; empty for the first.
    pub word: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// Its view; empty where the page itself knows.
    pub view: &'static str,
    /// The columns that name an entry.
    pub key: &'static [&'static str],
    /// The columns of words that are searched.
    pub searched: &'static [&'static str],
    /// What may follow the order by key.
    pub order: &'static str,
}

/// The lists, in the order of their tabs.
pub const LISTS: [List; 9] = [
    List {
        word: "",
        name: "Models",
        view: "v_models",
        key: &["model_code"],
        searched: &["model_code", "display_name", "family"],
        order: "model_code.asc",
    },
    List {
        word: "accelerators",
        name: "Accelerators",
        view: "v_accelerator_types",
        key: &["accelerator_code"],
        searched: &["accelerator_code", "display_name", "vendor"],
        order: "accelerator_code.asc",
    },
    List {
        word: "frameworks",
        name: "Frameworks",
        view: "v_frameworks",
        key: &["framework_code", "framework_version"],
        searched: &["framework_code", "framework_version", "display_name"],
        order: "framework_code.asc,framework_version.asc",
    },
    List {
        word: "arguments",
        name: "Engine arguments",
        view: "v_framework_engine_args_templates",
        key: &["framework_code", "framework_version", "key"],
        searched: &["key", "cli_flag", "meaning"],
        order: "framework_code.asc,framework_version.asc,key.asc",
    },
    List {
        word: "sets",
        name: "Argument sets",
        view: "v_framework_engine_args_sets",
        key: &["set_code"],
        searched: &["set_code", "display_name", "model_code", "model_id", "model_family", "variant"],
        order: "set_code.asc",
    },
    List {
        word: "configurations",
        name: "Configurations",
        view: "v_server_configs",
        key: &["config_code"],
        searched: &["config_code", "display_name", "accelerator_code"],
        order: "config_code.asc",
    },
    List {
        word: "tools",
        name: "Tools",
        view: "v_tools",
        key: &["tool_code"],
        searched: &["tool_code", "display_name", "modality"],
        order: "tool_code.asc",
    },
    List {
        word: "prompts",
        name: "Prompts and data sets",
        view: "v_prompt_sources",
        key: &["prompt_source_code"],
        searched: &["prompt_source_code", "name", "description"],
        order: "prompt_source_code.asc",
    },
    List { word: "metrics", name: "Metrics", view: "", key: &["metric"], searched: &[], order: "" },
];

/// Entries on one page.
pub const PAGE_SIZE: usize = 100;

/// What a set of engine arguments is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    /// The defaults of its framework's version.
    Defaults,
    /// Another set.
    Set(String),
}

/// The word for the defaults in an address. No set can have this code: codes hold no `~`.
const DEFAULTS: &str = "~defaults";

/// What the catalogue is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogueView {
    /// The list.
    pub list: List,
    /// What is looked for.
    pub find: String,
    /// The framework that sets and arguments are of; empty for any.
    pub framework: String,
    /// Its version, for arguments; empty for any.
    pub version: String,
    /// Only what was verified; of arguments, only those that need an approval.
    pub only: bool,
    /// The page, from 1.
    pub page: usize,
    /// The entry that is open: the parts of its key, joined by a blank.
    pub entry: Option<String>,
    /// What the open set is compared with.
    pub against: Option<Against>,
    /// Whether arguments are shown that are the same on both sides.
    pub all: bool,
    /// Whether the open set is being cloned.
    pub cloning: bool,
}

impl Default for CatalogueView {
    fn default() -> Self {
        Self {
            list: LISTS[0],
            find: String::new(),
            framework: String::new(),
            version: String::new(),
            only: false,
            page: 1,
            entry: None,
            against: None,
            all: false,
            cloning: false,
        }
    }
}

impl CatalogueView {
    /// Reads the part of an address after the `?`. What is unknown is left out.
    pub fn read(query: &Query) -> Self {
        let word = |key: &str| query.get(key).unwrap_or_default().to_owned();
        let tab = query.get("tab").unwrap_or_default();
        Self {
            list: LISTS.iter().find(|l| l.word == tab).copied().unwrap_or(LISTS[0]),
            find: word("find"),
            framework: word("framework"),
            version: word("version"),
            only: query.get("only") == Some("true"),
            page: query.get("page").and_then(|p| p.parse().ok()).filter(|p| *p > 0).unwrap_or(1),
            entry: query.get("entry").filter(|e| !e.is_empty()).map(str::to_owned),
            against: query.get("against").filter(|e| !e.is_empty()).map(|code| match code {
                DEFAULTS => Against::Defaults,
                code => Against::Set(code.to_owned()),
            }),
            all: query.get("all") == Some("true"),
            cloning: query.get("clone") == Some("true"),
        }
    }

    /// Writes itself over its own keys; what is at its default is left out.
    pub fn write(&self, query: &mut Query) {
        let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let yes = |is: bool| is.then_some("true");
        let against = self.against.as_ref().map(|against| match against {
            Against::Defaults => DEFAULTS,
            Against::Set(code) => code,
        });
        query
            .set("tab", word(self.list.word).as_deref())
            .set("find", word(&self.find).as_deref())
            .set("framework", word(&self.framework).as_deref())
            .set("version", word(&self.version).as_deref())
            .set("only", yes(self.only))
            .set("page", (self.page > 1).then(|| self.page.to_string()).as_deref())
            .set("entry", self.entry.as_deref())
            .set("against", against)
            .set("all", yes(self.all))
            .set("clone", yes(self.cloning));
    }

    /// Another list, with nothing of the one before.
    pub fn of_list(list: List) -> Self {
        Self { list, ..Self::default() }
    }

    /// Opens an entry, or closes it.
    pub fn open(&mut self, entry: Option<String>) {
        (self.entry, self.against, self.cloning) = (entry, None, false);
    }

    /// The request for this page of the list; nothing where the page itself knows.
    pub fn request(&self) -> Option<String> {
        let list = self.list;
        if list.view.is_empty() {
            return None;
        }
        let mut conditions = Vec::new();
        let of_framework = matches!(list.word, "arguments" | "sets" | "frameworks");
        if of_framework && !self.framework.is_empty() {
            conditions.push(format!("framework_code=eq.{}", percent(&self.framework)));
        }
        if list.word == "arguments" && !self.version.is_empty() {
            conditions.push(format!("framework_version=eq.{}", percent(&self.version)));
        }
        match list.word {
            "sets" if self.only => conditions.push("verified=is.true".to_owned()),
            "arguments" if self.only => conditions.push("dangerous=is.true".to_owned()),
            _ => {}
        }
        if list.word == "sets" {
            conditions.push("archived=is.false".to_owned());
        }
        conditions.extend(self.looked_for());
        conditions.push(format!("order={}", list.order));
        conditions.push(format!("limit={PAGE_SIZE}&offset={}", (self.page - 1) * PAGE_SIZE));
        Some(format!("/api/{}?{}", list.view, conditions.join("&")))
    }

    /// Any of the searched columns holds what is looked for, whatever its case.
    fn looked_for(&self) -> Option<String> {
        let text = self.find.trim();
        if text.is_empty() {
            return None;
        }
        let quoted = quoted_pattern(text);
        let tests: Vec<String> = self.list.searched.iter().map(|c| format!("{c}.ilike.{quoted}")).collect();
        Some(format!("or={}", percent(&format!("({})", tests.join(",")))))
    }

    /// The request for the entry that is open.
    pub fn entry_request(&self) -> Option<String> {
        let entry = self.entry.as_ref().filter(|_| !self.list.view.is_empty())?;
        let parts: Vec<&str> = entry.split(' ').collect();
        (parts.len() == self.list.key.len()).then(|| {
            let tests: Vec<String> =
                self.list.key.iter().zip(&parts).map(|(c, p)| format!("{c}=eq.{}", percent(p))).collect();
            format!("/api/{}?{}", self.list.view, tests.join("&"))
        })
    }
}

/// A pattern that finds a text anywhere, quoted as a list of conditions wants it.
fn quoted_pattern(text: &str) -> String {
    let mut pattern = String::from("\"*");
    for character in text.chars() {
        match character {
            // Signs of patterns stand for themselves: a backslash before them, and one before that in quotes.
            '%' | '_' | '\\' => pattern.push_str("\\\\"),
            '"' => pattern.push('\\'),
            _ => {}
        }
        if character == '\\' {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push_str("*\"");
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fresh_catalogue_has_a_bare_address() {
        let mut query = Query::default();
        CatalogueView::default().write(&mut query);
        assert_eq!(query.write(), "");
        assert_eq!(
            CatalogueView::default().request().as_deref(),
            Some("/api/v_models?order=model_code.asc&limit=100&offset=0")
        );
    }

    #[test]
    fn what_is_looked_for_is_asked_of_the_view() {
        let view = CatalogueView::read(&Query::parse("?tab=sets&find=a_b&framework=vllm&only=true&page=2"));
        assert_eq!(
            view.request().as_deref(),
            Some(
                "/api/v_framework_engine_args_sets?framework_code=eq.vllm&verified=is.true&archived=is.false&or=%28\
                 set_code.ilike.%22%2Aa%5C%5C_b%2A%22%2Cdisplay_name.ilike.%22%2Aa%5C%5C_b%2A%22%2C\
                 model_code.ilike.%22%2Aa%5C%5C_b%2A%22%2Cmodel_id.ilike.%22%2Aa%5C%5C_b%2A%22%2C\
                 model_family.ilike.%22%2Aa%5C%5C_b%2A%22%2Cvariant.ilike.%22%2Aa%5C%5C_b%2A%22%29\
                 &order=set_code.asc&limit=100&offset=100"
            )
        );
    }

    #[test]
    fn an_entry_is_found_by_every_part_of_its_key() {
        let view = CatalogueView::read(&Query::parse("?tab=frameworks&entry=vllm~200.28.0"));
        assert_eq!(
            view.entry_request().as_deref(),
            Some("/api/v_frameworks?framework_code=eq.vllm&framework_version=eq.0.28.0")
        );
        assert_eq!(CatalogueView::read(&Query::parse("?tab=frameworks&entry=vllm")).entry_request(), None);
    }

    proptest! {
        #[test]
        fn every_setting_survives_its_address(
            list in 0..LISTS.len(),
            find in "\\PC{0,12}",
            framework in "[a-z-]{0,8}",
            version in "[0-9.]{0,6}",
            flags in proptest::array::uniform3(proptest::bool::ANY),
            page in 1usize..200,
            entry in proptest::option::of("\\PC{1,12}"),
            against in proptest::option::of(proptest::option::of("[a-z0-9-]{1,12}")),
        ) {
            let [only, all, cloning] = flags;
            let against = against.map(|code| code.map_or(Against::Defaults, Against::Set));
            let view = CatalogueView { list: LISTS[list], find, framework, version, only, page, entry, against, all, cloning };
            let mut query = Query::parse("?drawer=event");
            view.write(&mut query);
            let query = Query::parse(&query.write());
            prop_assert_eq!(CatalogueView::read(&query), view);
            prop_assert_eq!(query.get("drawer"), Some("event"));
        }
    }
}
