//! What a layer has of its own: settings of which each may be left out, and is then the model's.

use serde::{Deserialize, Serialize};

use super::config::{
    Activation, Algorithm, AttentionConfig, AttentionKind, EpsAt, ExpertsConfig, FfnConfig, LatentConfig, MaskBy,
    MaskFillConfig, NormConfig, NormKind, NormPosition, Positions, QkNorm, Scale, SoftmaxShift,
};

macro_rules! own {
    ($(#[$doc:meta])* $own:ident ($schema:literal) of $whole:ident as $name:literal { $($field:ident: $t:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, default, rename = $name)]
        #[cfg_attr(test, schemars(rename = $schema))]
        pub struct $own {
            $(
                /// Unless given, the model's.
                #[serde(
                    serialize_with = "given::serialize",
                    deserialize_with = "given::deserialize",
                    skip_serializing_if = "Option::is_none"
                )]
                pub $field: Option<$t>,
            )*
        }

        impl $own {
            /// These settings, and the model's where one is not given.
            pub fn over(&self, model: &$whole) -> $whole {
                $whole { $($field: self.$field.clone().unwrap_or_else(|| model.$field.clone())),* }
            }
        }

        impl From<$whole> for $own {
            fn from(all: $whole) -> Self {
                Self { $($field: Some(all.$field)),* }
            }
        }
    };
}

own! {
    /// Normalisation of a layer.
    NormOverrides ("NormOverrides") of NormConfig as "NormConfig" {
        kind: NormKind,
        position: NormPosition,
        eps: f64,
        eps_at: EpsAt,
        affine: bool,
        unbiased: bool,
        bias: bool,
        unit_offset: bool,
        on_attention: bool,
    }
}

own! {
    /// Attention of a layer.
    AttentionOverrides ("AttentionOverrides") of AttentionConfig as "AttentionConfig" {
        kind: AttentionKind,
        scale: Scale,
        qkv_bias: bool,
        q_bias: Option<bool>,
        k_bias: Option<bool>,
        v_bias: Option<bool>,
        clip_qkv: Option<f64>,
        out_bias: bool,
        out_projection: bool,
        projections: bool,
        window: Option<usize>,
        causal: Option<bool>,
        fill: MaskFillConfig,
        mask_by: MaskBy,
        softmax: SoftmaxShift,
        positions: Option<Positions>,
        qk_norm: QkNorm,
        qk_norm_bias: Option<bool>,
        softcap: Option<f64>,
        sinks: bool,
        latent: Option<LatentConfig>,
        algorithm: Algorithm,
    }
}

own! {
    /// Feed-forward network of a layer.
    FfnOverrides ("FfnOverrides") of FfnConfig as "FfnConfig" {
        activation: Activation,
        gated: bool,
        bias: bool,
        w1_bias: Option<bool>,
        v1_bias: Option<bool>,
        w2_bias: Option<bool>,
        clamp: Option<f64>,
        linear_offset: f64,
        experts: Option<ExpertsConfig>,
    }
}

/// A field that is there is given, also where it says `None`; it is written as its value alone.
mod given {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option)] // what serde hands over
    pub fn serialize<T: Serialize, S: Serializer>(x: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        match x {
            Some(x) => x.serialize(to),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        T::deserialize(from).map(Some)
    }
}
