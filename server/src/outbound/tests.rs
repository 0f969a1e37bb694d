use super::*;

fn policy(allowed: &[&str]) -> Policy {
    Policy::of_control_plane(allowed.join(",").parse().unwrap())
}

#[test]
fn every_way_to_write_an_address_that_is_not_public_is_refused() {
    for url in [
        "http://127.0.0.1/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://10.1.2.3:8443/",
        "https://192.168.0.1/",
        "https://172.31.255.255/",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[64:ff9b::a00:1]/",
        "https://[2002:a00:1::]/",
        "https://224.0.0.1/",
    ] {
        assert!(matches!(policy(&[]).check_form(url), Err(OutboundError::Refused(_))), "{url}");
    }
    for url in ["https://93.184.216.34/hook", "https://[2606:2800:220:1::1]/", "https://172.32.0.1/"] {
        policy(&[]).check_form(url).unwrap();
    }
}

#[test]
fn what_is_no_address_for_requests_is_refused() {
    for url in [
        "",
        "x",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "https://u:p@example.org/",
    ] {
        assert!(matches!(policy(&[]).check_form(url), Err(OutboundError::Refused(_))), "{url}");
    }
}

#[tokio::test]
async fn a_name_is_judged_by_what_it_resolves_to() {
    let refused = policy(&[]).resolve("https://localhost:8443/hook").await.unwrap_err();
    assert!(
        matches!(&refused, OutboundError::Refused(what) if what.contains("not a public address")),
        "{refused}"
    );
    let target = policy(&["127.0.0.0/8", "::1/128"]).resolve("http://localhost:81/hook").await.unwrap();
    assert!(
        !target.addresses.is_empty() && target.addresses.iter().all(|address| address.ip().is_loopback())
    );
}

#[tokio::test]
async fn plain_http_goes_only_where_the_operator_said_so() {
    let refused = policy(&[]).resolve("http://93.184.216.34/").await.unwrap_err();
    assert!(refused.to_string().contains("not encrypted"), "{refused}");
    policy(&["93.184.216.0/24"]).resolve("http://93.184.216.34/").await.unwrap();
}

#[tokio::test]
async fn load_may_be_plain_and_goes_no_nearer_than_the_operator_said() {
    let public = Policy::of_agents(Networks::default());
    public.check("http://93.184.216.34:8000/v1").await.unwrap();
    public.check("https://a-name-that-only-the-agent-knows.invalid/v1").await.unwrap();
    for url in
        ["http://127.0.0.1:8000/v1", "http://localhost:8000", "http://169.254.169.254/", "http://10.0.0.7/"]
    {
        let refused = public.check(url).await.unwrap_err().to_string();
        assert!(refused.contains("BENCHTRAIL_ENDPOINT_ALLOW"), "{url}: {refused}");
    }
    let lab = Policy::of_agents("10.0.0.0/8".parse().unwrap());
    lab.check("http://10.0.0.7:8000/v1").await.unwrap();
    lab.check("http://169.254.169.254/").await.unwrap_err();
}

#[tokio::test]
async fn what_the_operator_wrote_down_is_pinned_and_not_judged() {
    let target = Target::of_operator(Url::parse("http://127.0.0.1:81/x").unwrap()).await.unwrap();
    assert_eq!(target.addresses, ["127.0.0.1:81".parse().unwrap()]);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        let _ = stream.read(&mut buffer).await.unwrap();
        let answer = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let url = format!("http://{address}/hook");
    let answer = policy(&["127.0.0.0/8"])
        .send(Method::POST, &url, HeaderMap::new(), b"{}".to_vec(), Duration::from_secs(5))
        .await
        .unwrap();
    assert_eq!(answer.status, StatusCode::FOUND);
    serving.await.unwrap();
}
