//! Golden vectors of the hash chain, and the Merkle proofs.

use events::canonical::CanonicalJson;
use events::envelope::{Actor, ActorKind, GENESIS_HASH, Recorded, chain_hash};
use events::hexadecimal;
use events::keys::StreamKey;
use events::merkle::{path, root, root_of_path};
use events::timestamp::Timestamp;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The event of the golden vectors. It must never change.
fn golden() -> Recorded {
    let mut event = Recorded {
        position: 1,
        stream: StreamKey::new("project", &["acme", "p/1"]),
        version: 1,
        event_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001),
        event_type: "project.created".to_owned(),
        schema_version: 1,
        org: "acme".to_owned(),
        actor: Actor { kind: ActorKind::User, id: "u1".to_owned() },
        causation_id: None,
        correlation_id: Some(Uuid::from_u128(2)),
        occurred_at: Timestamp::from_micros(1_700_000_000_000_001).unwrap(),
        recorded_at: Timestamp::from_micros(1_700_000_000_000_002).unwrap(),
        payload: CanonicalJson::of(&serde_json::json!({"name": "é", "n": 1})).unwrap().into_string(),
        leaf: [0; 32],
        hash: [0; 32],
    };
    event.leaf = event.computed_leaf();
    event.hash = chain_hash(&GENESIS_HASH, &event.leaf);
    event
}

#[test]
fn the_leaf_and_the_hash_are_the_golden_ones() {
    let event = golden();
    assert_eq!(
        hexadecimal::encode(&event.leaf),
        "df64a7fc813a886675a8210e62564bcc6051463a63443b5c988f52684d737b39"
    );
    assert_eq!(
        hexadecimal::encode(&event.hash),
        "77232dca3614406bb51bc10aba4308f874b0020b893a16e12935af42c12c439b"
    );
}

#[test]
fn the_leaf_is_what_the_documentation_says() {
    // Written out by hand, without the code under test.
    let mut bytes = b"benchtrail.event.v1\n".to_vec();
    let fields: [&[u8]; 14] = [
        &1_i64.to_be_bytes(),
        b"project/acme/p%2F1",
        &1_i64.to_be_bytes(),
        &0x0190_0000_0000_7000_8000_0000_0000_0001_u128.to_be_bytes(),
        b"project.created",
        &1_u64.to_be_bytes(),
        b"acme",
        b"user",
        b"u1",
        b"",
        &2_u128.to_be_bytes(),
        &1_700_000_000_000_001_i64.to_be_bytes(),
        &1_700_000_000_000_002_i64.to_be_bytes(),
        "{\"n\":1,\"name\":\"é\"}".as_bytes(),
    ];
    for field in fields {
        bytes.extend_from_slice(&u32::try_from(field.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(field);
    }
    let leaf: [u8; 32] = Sha256::digest(&bytes).into();
    assert_eq!(golden().leaf, leaf);
    let hash: [u8; 32] = Sha256::digest([[0; 32], leaf].concat()).into();
    assert_eq!(golden().hash, hash);
}

#[test]
fn every_field_changes_the_leaf() {
    let changes: [fn(&mut Recorded); 15] = [
        |e| e.position += 1,
        |e| e.stream = StreamKey::new("project", &["acme", "p2"]),
        |e| e.version += 1,
        |e| e.event_id = Uuid::from_u128(9),
        |e| e.event_type.push('x'),
        |e| e.schema_version += 1,
        |e| e.org.push('x'),
        |e| e.actor.kind = ActorKind::Agent,
        |e| e.actor.id.push('x'),
        |e| e.causation_id = Some(Uuid::nil()),
        |e| e.correlation_id = None,
        |e| e.occurred_at = e.occurred_at.plus_micros(1),
        |e| e.recorded_at = e.recorded_at.plus_micros(1),
        |e| e.payload.push(' '),
        // A byte moved over a field's border.
        |e| {
            e.event_type.push('a');
            e.org.remove(0);
        },
    ];
    for change in changes {
        let mut event = golden();
        change(&mut event);
        assert_ne!(event.computed_leaf(), golden().leaf);
    }
}

#[test]
fn a_recorded_event_survives_being_written_as_json() {
    let text = serde_json::to_string(&golden()).unwrap();
    assert_eq!(serde_json::from_str::<Recorded>(&text).unwrap(), golden());
}

fn leaf(number: usize) -> [u8; 32] {
    Sha256::digest(number.to_be_bytes()).into()
}

#[test]
fn the_root_is_that_of_rfc_6962() {
    // By the RFC's own definition, written out for three leaves.
    let node = |left: [u8; 32], right: [u8; 32]| -> [u8; 32] {
        Sha256::digest([&[1][..], &left, &right].concat()).into()
    };
    let node_of = |leaf: [u8; 32]| -> [u8; 32] { Sha256::digest([&[0][..], &leaf].concat()).into() };
    let leaves = [leaf(0), leaf(1), leaf(2)];
    assert_eq!(root(&leaves), node(node(node_of(leaves[0]), node_of(leaves[1])), node_of(leaves[2])));
    assert_eq!(
        hexadecimal::encode(&root(&[])),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_leaf_has_a_path_to_the_root(count in 1usize..70) {
        let leaves: Vec<_> = (0..count).map(leaf).collect();
        let root = root(&leaves);
        for index in 0..count {
            let path = path(&leaves, index).unwrap();
            prop_assert_eq!(root_of_path(&leaves[index], index as u64, count as u64, &path), Some(root));
        }
        prop_assert_eq!(path(&leaves, count), None);
    }

    #[test]
    fn a_path_proves_nothing_else(count in 2usize..70, index in any::<prop::sample::Index>(), other in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>()) {
        let leaves: Vec<_> = (0..count).map(leaf).collect();
        let root = root(&leaves);
        let (index, other) = (index.index(count), other.index(count));
        let good = path(&leaves, index).unwrap();
        if other != index {
            prop_assert_ne!(root_of_path(&leaves[other], index as u64, count as u64, &good), Some(root));
            prop_assert_ne!(root_of_path(&leaves[index], other as u64, count as u64, &good), Some(root));
        }
        let mut short = good.clone();
        short.pop();
        prop_assert_ne!(root_of_path(&leaves[index], index as u64, count as u64, &short), Some(root));
        let mut long = good.clone();
        long.push([0; 32]);
        prop_assert_ne!(root_of_path(&leaves[index], index as u64, count as u64, &long), Some(root));
        let mut altered = good.clone();
        let bit = flip.index(good.len() * 256);
        altered[bit / 256][bit % 256 / 8] ^= 1 << (bit % 8);
        prop_assert_ne!(root_of_path(&leaves[index], index as u64, count as u64, &altered), Some(root));
    }
}
