//! Addresses that are never called, in every disguise.

use super::super::connector::Resolver;
use super::*;
use crate::table::rows;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// One address in many spellings, and its relatives: what is special about them, and the hosts.
const HOSTS: &str = "
    the metadata address, as numbers | 169.254.169.254 169.254.169.254. 2852039166 0xa9fea9fe 0xA9FEA9FE 0XA9.0XFE.0XA9.0XFE 025177524776
    the metadata address, as numbers | 0251.0376.0251.0376 0251.254.169.254 000251.000376.000251.000376 0xa9.254.0251.254 169.254.43518
    the metadata address, as numbers | 169.16689662 169.254.0xa9fe 169.0376.43518 0xa9.16689662 2852039166. %31%36%39.254.169.254
    the metadata address, as numbers | 169%2e254%2e169%2e254
    in other letters and with other dots | １６９.２５４.１６９.２５４ 169。254。169。254 ①⑥⑨.②⑤④.①⑥⑨.②⑤④
    the rest of its range | 169.254.0.1 169.254.170.2 169.254.255.255 0xa9.0xfe.1
    as IPv6 | [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [0:0:0:0:0:ffff:a9fe:a9fe]
    as IPv6 | [0000:0000:0000:0000:0000:FFFF:A9FE:A9FE] [::169.254.169.254] [::a9fe:a9fe] [::ffff:0:169.254.169.254]
    as IPv6 | [64:ff9b::169.254.169.254] [64:ff9b::a9fe:a9fe] [64:ff9b:1::a9fe:a9fe] [64:ff9b:1:a9fe:a9:fe00::]
    as IPv6 | [2002:a9fe:a9fe::] [2002:a9fe:a9fe::1] [2001:0:a9fe:a9fe::1] [2001:0:808:808::5601:5601]
    as IPv6 | [2001:db8::5efe:a9fe:a9fe] [2001:db8::200:5efe:a9fe:a9fe] [fe80::1] [FE80:0:0:0::a9fe:a9fe] [febf::1]
    as IPv6 | [fd00:ec2::254] [fd00:0ec2:0:0:0:0:0:254] [fd00:ec2::23] [fd20:ce::254]
    names | metadata metadata. METADATA metadata.google.internal metadata.google.internal. Metadata.Google.Internal
    names | ｍｅｔａｄａｔａ.google.internal metadata。google。internal metadata.goog
    this machine under no address, everybody, some | 0 0. 0x0 00 0.0.0.0 0.1 [::] [::ffff:0.0.0.0] 255.255.255.255 4294967295 0xffffffff
    this machine under no address, everybody, some | [::ffff:255.255.255.255] 224.0.0.1 239.255.255.250 [ff02::1] [ff05::2] [::ffff:224.0.0.1]
    other clouds | 100.100.100.200 168.63.129.16 192.0.0.192
";

fn scripted(answers: &[&[&str]]) -> (HttpClient, Resolver) {
    let answer = |it: &&[&str]| it.iter().map(|ip| ip.parse::<IpAddr>().unwrap()).collect();
    let script = answers.iter().map(answer).collect();
    let names = Resolver::Scripted(Arc::new(Mutex::new(script)));
    let connector = Connector::with_resolver(names.clone());
    (
        HttpClient::on(connector, Clock::start(Duration::ZERO)),
        names,
    )
}

fn left(names: &Resolver) -> usize {
    match names {
        Resolver::System => panic!("asked the machine"),
        Resolver::Scripted(script) => script.lock().unwrap().len(),
    }
}

#[tokio::test]
async fn no_disguise_helps() {
    let http_client = http_client();
    let hosts = rows(HOSTS).into_iter();
    let hosts: Vec<_> = hosts.flat_map(|[_, hosts]| hosts.split(' ')).collect();
    assert_eq!(hosts.len(), 79);
    for host in hosts {
        for cut in [None, Some(3)] {
            let mut call = call(&format!("http://user:secret@{host}:1/latest/"));
            call.cut = cut;
            let why = reason(http_client.deliver(call).await);
            assert!(why.contains("never called"), "{host}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }
}

#[tokio::test]
async fn https_is_no_way_around() {
    for cut in [None, Some(0)] {
        let mut call = call("https://[::ffff:a9fe:a9fe]/");
        call.cut = cut;
        let why = reason(http_client().deliver(call).await);
        assert!(why.contains("never called"), "{why}");
    }
}

#[tokio::test]
async fn one_forbidden_address_among_many_is_enough() {
    let handler = Handler::start().await;
    let port = handler.url.rsplit(':').next().unwrap();
    let (http_client, _) = scripted(&[&["127.0.0.1", "169.254.169.254"]]);
    let call = call(&format!("http://two.test:{port}/"));
    let why = reason(http_client.deliver(call).await);
    assert!(why.contains("169.254.169.254 (of two.test)"), "{why}");
    assert!(handler.seen().is_empty());
}

/// A name that leads home when it is looked at and elsewhere when it is used: it is looked at once, and used as seen.
#[tokio::test]
async fn a_name_that_changes_its_mind_is_asked_once_for_each_connection() {
    let handler = Handler::start().await;
    let port = handler.url.rsplit(':').next().unwrap().to_owned();
    let (http_client, names) = scripted(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let url = format!("http://flips.test:{port}/");
    assert_eq!(http_client.deliver(call(&url)).await, status(200));
    assert_eq!(left(&names), 1);
    // The same connection serves the next call; a new one meets the new answer.
    assert_eq!(http_client.deliver(call(&url)).await, status(200));
    assert_eq!(left(&names), 1);
    let mut cut = call(&url);
    cut.cut = Some(1);
    let why = reason(http_client.deliver(cut).await);
    assert!(why.contains("never called"), "{why}");
    assert_eq!(handler.seen().len(), 2);
    assert_eq!(
        handler.seen()[0].header("host"),
        format!("flips.test:{port}")
    );
}
