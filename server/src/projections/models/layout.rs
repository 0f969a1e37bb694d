//! How the model was laid out over the server's GPUs: the columns of a result beside its [`super::setup`].

use events::job::JobCreated;
use events::parallelism::{Parallelism, inferencex_words};
use events::tool_output::ToolOutputImported;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::projections::text::{Column, Kind};

/// A part of a row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Model servers on the host.
    pub(super) replicas: Option<u32>,
    /// GPUs of each; null where it takes all that the host has.
    pub(super) gpus_per_replica: Option<u32>,
    /// GPUs that were used; null where that is not known.
    pub(super) gpus_used: Option<i64>,
    pub(super) tensor_parallel_size: Option<u32>,
    pub(super) pipeline_parallel_size: Option<u32>,
    pub(super) data_parallel_size: Option<u32>,
    pub(super) expert_parallel_size: Option<u32>,
    /// The degrees in words: `TP4·DP2`.
    pub(super) parallelism: Option<String>,
    /// Whether the model was served by an endpoint on another machine than the one that sent the load: nothing is known of
    /// its hardware, its price and its power. Null for what was measured elsewhere altogether.
    pub(super) external_endpoint: Option<bool>,
}

/// Whether the job's endpoint runs already, and not on the host that sends the load.
fn served_elsewhere(created: &JobCreated) -> bool {
    let Some(url) = &created.commands.endpoint_url else { return false };
    let url = Url::parse(url).ok();
    match url.as_ref().and_then(Url::host) {
        Some(Host::Ipv4(address)) => !address.is_loopback() && !address.is_unspecified(),
        Some(Host::Ipv6(address)) => {
            let address = address.to_canonical();
            !address.is_loopback() && !address.is_unspecified()
        }
        Some(Host::Domain(name)) => {
            let own = name == "localhost" || name.ends_with(".localhost");
            !own && !name.eq_ignore_ascii_case(&created.server.hostname)
        }
        None => true,
    }
}

impl Layout {
    fn of(parallelism: &Parallelism) -> Self {
        Self {
            tensor_parallel_size: parallelism.tensor,
            pipeline_parallel_size: parallelism.pipeline,
            data_parallel_size: parallelism.data,
            expert_parallel_size: parallelism.expert,
            parallelism: parallelism.words(),
            ..Self::default()
        }
    }

    /// That of a job, whose server's GPUs are not looked at yet.
    pub(super) fn of_job(created: &JobCreated) -> Self {
        let commands = &created.commands;
        Self {
            replicas: Some(commands.replicas),
            gpus_per_replica: commands.gpus_per_replica,
            gpus_used: commands.gpus().map(i64::from),
            external_endpoint: Some(served_elsewhere(created)),
            ..Self::of(&Parallelism::of_commands(commands))
        }
    }

    /// That of a job on a server with this many GPUs: all of them are used where no number is given to the model servers.
    pub(super) fn on(&self, gpu_count: Option<i64>) -> Self {
        Self { gpus_used: self.gpus_used.or(gpu_count), ..self.clone() }
    }

    /// That of a result which was measured elsewhere, as far as it is told.
    pub(super) fn of_import(output: &ToolOutputImported) -> Self {
        let gpus_used = output.gpu_count.map(i64::from);
        let Some(inferencex) = &output.inferencex else { return Self { gpus_used, ..Self::default() } };
        let dimensions = &inferencex.dimensions;
        Self {
            gpus_used,
            parallelism: inferencex_words(dimensions),
            ..Self::of(&Parallelism::of_inferencex(dimensions))
        }
    }

    /// Whether the model was served on another machine than the one that sent the load.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.external_endpoint == Some(true)
    }

    /// Its columns, in the order of its fields.
    pub(super) fn columns() -> Vec<Column> {
        let numbers = [
            "replicas",
            "gpus_per_replica",
            "gpus_used",
            "tensor_parallel_size",
            "pipeline_parallel_size",
            "data_parallel_size",
            "expert_parallel_size",
        ];
        let mut columns = numbers.map(|name| Column::shown(name, Kind::Int)).to_vec();
        columns.push(Column::shown("parallelism", Kind::Text));
        columns.push(Column::shown("external_endpoint", Kind::Bool));
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::testing::job_created;

    #[test]
    fn an_endpoint_is_elsewhere_unless_it_is_the_hosts_own() {
        let elsewhere = |url: &str| {
            let mut created = job_created();
            created.server.hostname = "gpu-1".into();
            created.commands.endpoint_url = Some(url.to_owned()).filter(|url| !url.is_empty());
            served_elsewhere(&created)
        };
        for own in [
            "",
            "http://127.0.0.1:8000/v1",
            "http://[::1]:8000",
            "http://localhost:1",
            "http://GPU-1:8000/v1",
        ] {
            assert!(!elsewhere(own), "{own}");
        }
        for other in
            ["https://api.example.org/v1", "http://10.0.0.7:8000", "http://[2001:db8::1]:8000", "not a url"]
        {
            assert!(elsewhere(other), "{other}");
        }
    }
}
