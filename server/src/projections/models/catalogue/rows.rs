//! From a registered entry to its row.

use events::catalogue::{
    AcceleratorRegistered, EngineArgsSetRegistered, FrameworkRegistered, ModelRegistered,
};
use events::envelope::Recorded;

use super::{AcceleratorRow, EngineArgsSetRow, Entry, FrameworkRow, ModelRow, json, parts};
use crate::projections::FoldError;

pub(super) fn model_row(
    recorded: &Recorded,
    model: &ModelRegistered,
    entry: Entry,
) -> Result<ModelRow, FoldError> {
    let [model_code] = parts(recorded)?;
    Ok(ModelRow {
        model_code,
        display_name: model.display_name.clone(),
        modality: model.modality.clone(),
        family: model.family.clone(),
        params_b_total: model.params_b_total,
        params_b_active: model.params_b_active,
        max_context: model.max_context,
        layers: model.layers,
        hidden_size: model.hidden_size,
        attention_heads: model.attention_heads,
        kv_heads: model.kv_heads,
        head_dim: model.head_dim,
        attention_kind: model.attention_kind.clone(),
        kv_cache_layers: model.kv_cache_layers,
        kv_bytes_per_token_16bit: model.kv_bytes_per_token_16bit,
        sliding_window: model.sliding_window,
        experts: model.experts,
        experts_per_token: model.experts_per_token,
        default_precision: model.default_precision.clone(),
        precisions: model.precisions.clone(),
        gated: model.gated,
        license: model.license.clone(),
        field_notes: json(&model.field_notes)?,
        unverified: model.unverified.clone(),
        sources: model.sources.clone(),
        entry,
    })
}

pub(super) fn accelerator_row(
    recorded: &Recorded,
    accelerator: &AcceleratorRegistered,
    entry: Entry,
) -> Result<AcceleratorRow, FoldError> {
    let [accelerator_code] = parts(recorded)?;
    Ok(AcceleratorRow {
        accelerator_code,
        display_name: accelerator.display_name.clone(),
        vendor: accelerator.vendor.clone(),
        kind: accelerator.kind.clone(),
        memory_gb: accelerator.memory_gb,
        bandwidth_gb_s: accelerator.bandwidth_gb_s,
        tdp_w: accelerator.tdp_w,
        precisions: accelerator.precisions.clone(),
        interconnect: accelerator.interconnect.clone(),
        launch_year: accelerator.launch_year,
        compute_capability: accelerator.compute_capability.clone(),
        price_per_hour_usd: accelerator.price_per_hour_usd,
        price_source: accelerator.price_source.clone(),
        price_date: accelerator.price_date.clone(),
        other_prices: json(&accelerator.other_prices)?,
        notes: accelerator.notes.clone(),
        unverified: accelerator.unverified.clone(),
        sources: accelerator.sources.clone(),
        entry,
    })
}

pub(super) fn framework_row(
    recorded: &Recorded,
    framework: &FrameworkRegistered,
    entry: Entry,
) -> Result<FrameworkRow, FoldError> {
    let [framework_code, framework_version] = parts(recorded)?;
    Ok(FrameworkRow {
        framework_code,
        framework_version,
        display_name: framework.display_name.clone(),
        serve_argv: framework.serve_argv.clone(),
        flag_style: framework.flag_style.clone(),
        readiness_path: framework.readiness_path.clone(),
        readiness_timeout_s: framework.readiness_timeout_s,
        serve_env: json(&framework.serve_env)?,
        fetch_argv: framework.fetch_argv.clone(),
        companions: json(&framework.companions)?,
        sidecar: framework.sidecar,
        readiness_port_arg: framework.readiness_port_arg.clone(),
        engine_args: json(&framework.engine_args)?,
        container_image: framework.container_image.clone(),
        container_images: json(&framework.container_images)?,
        support_level: framework.support_level.clone(),
        vendors: framework.vendors.clone(),
        modalities: framework.modalities.clone(),
        min_compute_capability: framework.min_compute_capability.clone(),
        metrics_path: framework.metrics_path.clone(),
        default_port: framework.default_port,
        sources: framework.sources.clone(),
        entry,
    })
}

pub(super) fn set_row(
    recorded: &Recorded,
    set: &EngineArgsSetRegistered,
    entry: Entry,
) -> Result<EngineArgsSetRow, FoldError> {
    let [set_code] = parts(recorded)?;
    Ok(EngineArgsSetRow {
        set_code,
        display_name: set.display_name.clone(),
        framework_code: set.framework_code.clone(),
        framework_version: set.framework_version.clone(),
        min_framework_version: set.min_framework_version.clone(),
        tool_scope: set.tool_scope.clone(),
        model_code: set.model_code.clone(),
        model_link: set.model_link.clone(),
        model_id: set.model_id.clone(),
        model_family: set.model_family.clone(),
        variant: set.variant.clone(),
        precision: set.precision.clone(),
        accelerator_codes: set.accelerator_codes.clone(),
        gpu_count: set.gpu_count,
        nodes: set.nodes,
        vram_minimum_gb: set.vram_minimum_gb,
        engine_args: json(&set.values)?,
        env: json(&set.env)?,
        companions: json(&set.companions)?,
        unsupported_flags: set.unsupported_flags.clone(),
        verified: set.verified,
        curated: set.curated,
        named_in_seeds: set.named_in_seeds,
        archived: false,
        version: recorded.version,
        hardware_status: set.hardware_status.clone(),
        cautions: set.cautions.clone(),
        notes: set.notes.clone(),
        derivation: set.derivation.clone(),
        reference: set.reference.clone(),
        source_url: set.source_url.clone(),
        source: set.source.clone(),
        cloned_from: set.cloned_from.clone(),
        entry,
    })
}
