//! Archived ranges: read and verified together with what is still in the database.

mod common;

use common::{Cluster, append, read_and_check};
use server::log::{Archive, Log, LogConfig, VerifyOptions, archive_range, archive_sealed, verify};

/// A log of 3,000 events in ten streams, whose first 2,000 are archived and then gone from the database.
async fn half_archived(cluster: &Cluster, folder: &std::path::Path) -> Log {
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    for round in 0..300 {
        append(&log, &format!("s{}", round % 10), 0..10).await;
    }
    log.checkpoint().await.unwrap();
    let whole = read_and_check(&log).await;
    let first = archive_range(log.pool(), folder, 1, 1234).await.unwrap();
    let second = archive_range(log.pool(), folder, 1235, 2000).await.unwrap();
    assert_eq!((first.count, second.count), (1234, 766));
    assert_eq!((second.previous_hash, second.hash), (whole[1233].hash, whole[1999].hash));
    // As detaching a partition would leave it.
    cluster
        .execute("bt", "set session_replication_role = replica; delete from events where position <= 2000")
        .await
        .unwrap();
    whole_again(cluster, folder, &whole).await
}

/// The log reads as before, with the archive at hand.
async fn whole_again(
    cluster: &Cluster,
    folder: &std::path::Path,
    whole: &[events::envelope::Recorded],
) -> Log {
    let log =
        Log::open(LogConfig { archive: Some(folder.to_owned()), ..cluster.config("bt") }).await.unwrap();
    assert_eq!(read_and_check(&log).await, whole);
    for (after, limit) in [(0, 1), (1, 5), (1233, 3), (1999, 1), (1500, 300), (700, 10)] {
        let read = log.read_all(after, limit).await.unwrap();
        assert_eq!(read, whole[after as usize..(after + limit) as usize], "{limit} after {after}");
    }
    let of_stream: Vec<_> = whole.iter().filter(|e| e.stream == common::stream("s3")).cloned().collect();
    for (from, limit) in [(1, 1000), (1, 10), (150, 100), (250, 1000), (301, 10)] {
        let read = log.read_stream(&common::stream("s3"), from, limit).await.unwrap();
        let wanted =
            of_stream.iter().skip(from as usize - 1).take(limit as usize).cloned().collect::<Vec<_>>();
        assert_eq!(read, wanted, "{limit} from version {from}");
    }
    for span in [700, 5000] {
        let (mut read, mut after) = (Vec::new(), 0);
        loop {
            let stretch = log.read_without(after, span, &["some.other"]).await.unwrap();
            read.extend(stretch.events);
            after = stretch.last;
            if after >= stretch.head {
                break;
            }
        }
        assert_eq!(read, whole, "in stretches of {span}");
    }
    assert_eq!(log.read_kind(common::stream("s3").kind()).await.unwrap(), whole);
    for event in [&whole[0], &whole[1234], &whole[2500]] {
        assert_eq!(log.event_by_id(event.event_id).await.unwrap().as_ref(), Some(event));
    }
    log
}

#[tokio::test]
async fn a_log_whose_beginning_is_archived_reads_and_verifies_as_a_whole() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().unwrap();
    let log = half_archived(&cluster, folder.path()).await;
    let archive = Archive::open(folder.path()).unwrap();
    for manifest in archive.manifests() {
        assert_eq!(archive.file_fault(manifest).unwrap(), None);
    }
    let options = VerifyOptions { archive, ..VerifyOptions::default() };
    let report = verify(log.pool(), &options, |_| {}).await.unwrap();
    assert_eq!((report.fault, report.events, report.checkpoints), (None, 3000, 1));
    for from in [2, 1234, 1235, 2000, 2001, 2500] {
        let options = VerifyOptions { from, ..options.clone() };
        assert_eq!(verify(log.pool(), &options, |_| {}).await.unwrap().fault, None, "from {from}");
    }
    // And without it, the first position is missed.
    let report = verify(log.pool(), &VerifyOptions::default(), |_| {}).await.unwrap();
    assert_eq!(report.fault.unwrap().position, 1);
    // It goes on.
    assert_eq!(append(&log, "s1", 0..1).await, (3001, 3001));
}

#[tokio::test]
async fn a_hole_between_archive_and_database_is_an_error_and_not_a_gap() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().unwrap();
    half_archived(&cluster, folder.path()).await;
    let log = cluster.log("bt").await;
    assert!(log.read_all(0, 5).await.is_err());
    assert!(log.read_all(0, 500).await.is_err());
    assert!(log.read_stream(&common::stream("s1"), 1, 1000).await.is_err());
    assert_eq!(log.read_all(2000, 5).await.unwrap().len(), 5);
}

#[tokio::test]
async fn an_altered_archive_is_found_at_its_position() {
    use std::io::{Read, Write};
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().unwrap();
    let log = half_archived(&cluster, folder.path()).await;
    let archive = Archive::open(folder.path()).unwrap();
    let manifest = archive.covering(1500).unwrap();
    let path = folder.path().join(&manifest.file);
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    let altered: String = text
        .lines()
        .map(|line| match line.contains("\"position\":1500,") {
            true => line.replace("\"schema_version\":1", "\"schema_version\":2") + "\n",
            false => line.to_owned() + "\n",
        })
        .collect();
    assert_ne!(text, altered);
    let mut file =
        flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
    file.write_all(altered.as_bytes()).unwrap();
    file.finish().unwrap();

    assert!(archive.file_fault(manifest).unwrap().is_some());
    let options = VerifyOptions { archive, ..VerifyOptions::default() };
    let fault = verify(log.pool(), &options, |_| {}).await.unwrap().fault.unwrap();
    assert_eq!(fault.position, 1500);

    std::fs::write(&path, &std::fs::read(&path).unwrap()[..1000]).unwrap();
    let fault = verify(log.pool(), &options, |_| {}).await.unwrap().fault.unwrap();
    assert!((1235..1500).contains(&fault.position), "{fault:?}");
}

#[tokio::test]
async fn only_full_partitions_are_archived_and_what_does_not_fit_never_is() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    append(&log, "a", 0..20).await;
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(archive_sealed(log.pool(), folder.path()).await.unwrap(), []);
    assert!(archive_range(log.pool(), folder.path(), 1, 21).await.is_err());
    cluster
        .execute(
            "bt",
            "set session_replication_role = replica; update events set org = 'x' where position = 7",
        )
        .await
        .unwrap();
    assert!(archive_range(log.pool(), folder.path(), 1, 20).await.is_err());
    assert_eq!(Archive::open(folder.path()).unwrap().manifests(), []);
}
