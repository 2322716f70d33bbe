//! Addresses, good and bad.

use proptest::prelude::*;

use crate::store::redis::link::{
    AddressError, RedisAddress,
    address::{Credentials, Topology},
    endpoint::{Endpoint, MAX_ENDPOINTS},
};

fn parse(text: &str) -> RedisAddress {
    RedisAddress::parse(text).unwrap()
}

/// With what is printed for a password.
fn hidden(mut address: RedisAddress) -> RedisAddress {
    let hide = |credentials: &mut Credentials| {
        credentials.password = credentials.password.take().map(|_| "***".into());
    };
    hide(&mut address.credentials);
    if let Topology::Sentinel { credentials, .. } = &mut address.topology {
        hide(credentials);
    }
    address
}

#[test]
fn each_kind_of_address_is_read() {
    let server = parse("redis://cache");
    assert_eq!(
        server.topology,
        Topology::Server(Endpoint::new("cache", 6379))
    );
    assert_eq!(server.credentials, Credentials::default());
    assert_eq!((server.database, &server.tls), (0, &None));

    let server = parse("rediss://me:p%40ss@[::1]:7000/3?ca=/etc/ca.pem&key=/k&cert=/c");
    assert_eq!(
        server.topology,
        Topology::Server(Endpoint::new("::1", 7000))
    );
    assert_eq!(server.credentials.password.as_deref(), Some("p@ss"));
    assert_eq!(server.database, 3);
    let tls = server.tls.unwrap();
    assert_eq!(tls.ca, Some("/etc/ca.pem".into()));
    assert_eq!(tls.client, Some(("/c".into(), "/k".into())));

    let sentinel = parse("redis+sentinel://:pw@a,b:1/main/2?sentinel_password=s%26s");
    let Topology::Sentinel {
        sentinels,
        service,
        credentials,
    } = &sentinel.topology
    else {
        panic!("{sentinel}");
    };
    assert_eq!(
        sentinels,
        &[Endpoint::new("a", 26_379), Endpoint::new("b", 1)]
    );
    assert_eq!((&**service, sentinel.database), ("main", 2));
    assert_eq!(credentials.password.as_deref(), Some("s&s"));
    assert_eq!(sentinel.credentials.user, None);

    let cluster = parse("rediss+cluster://a:1,b:2,a:1");
    let nodes = vec![Endpoint::new("a", 1), Endpoint::new("b", 2)];
    assert_eq!(cluster.topology, Topology::Cluster(nodes));
    assert!(cluster.tls.is_some());
}

#[test]
fn what_is_wrong_is_named_and_nothing_of_it_repeated() {
    for (text, error) in [
        ("cache:6379", AddressError::Scheme),
        ("http://cache", AddressError::Scheme),
        ("redis+ring://cache", AddressError::Scheme),
        ("redis://", AddressError::Host),
        ("redis://me:secret@", AddressError::Host),
        ("redis://a b", AddressError::Host),
        ("redis://[::1", AddressError::Host),
        ("redis://[cache]:1", AddressError::Host),
        ("redis://[::1]1", AddressError::Host),
        ("redis+cluster://a,,b", AddressError::Host),
        ("redis://cache:0", AddressError::Port),
        ("redis://cache:65536", AddressError::Port),
        ("redis://cache:+1", AddressError::Port),
        ("redis://cache:", AddressError::Port),
        ("redis://a,b", AddressError::SeveralHosts),
        ("redis://me@cache", AddressError::UserAlone),
        ("redis://me:%ff@cache", AddressError::Credentials),
        ("redis://me:a%0d%0ab@cache", AddressError::Credentials),
        ("redis://cache/one", AddressError::Database),
        ("redis://cache/-1", AddressError::Database),
        ("redis+sentinel://a,b", AddressError::Service),
        ("redis+sentinel://a,b/", AddressError::Service),
        ("redis+cluster://a/1", AddressError::ClusterPath),
        ("redis://me:sec#ret@cache", AddressError::Fragment),
        ("rediss://cache?cert=/c", AddressError::ClientPair),
        ("redis://cache?ca=/c", AddressError::Option("ca".into())),
        ("rediss://a?ca=1&ca=2", AddressError::Option("ca".into())),
        (
            "redis://a?sentinel_password=x",
            AddressError::Option("sentinel_password".into()),
        ),
    ] {
        let found = RedisAddress::parse(text).unwrap_err();
        assert_eq!(found, error, "{text}");
        assert!(!found.to_string().contains("secret"), "{text}");
    }
    let many = (0..=MAX_ENDPOINTS)
        .map(|i| format!("h{i}"))
        .collect::<Vec<_>>()
        .join(",");
    let found = RedisAddress::parse(&format!("redis+cluster://{many}"));
    assert_eq!(found, Err(AddressError::TooManyHosts));
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader_and_what_is_printed_is_the_same_place(
        text in "redis[s]?(\\+(sentinel|cluster))?://[ -~é]{0,40}",
    ) {
        if let Ok(address) = RedisAddress::parse(&text) {
            let printed = address.to_string();
            prop_assert_eq!(RedisAddress::parse(&printed), Ok(hidden(address)), "{}", printed);
        }
    }

    #[test]
    fn any_password_survives_its_encoding_and_stays_hidden(password in "[ -~£€]{8,24}") {
        let encoded = percent_encoding::utf8_percent_encode(
            &password,
            percent_encoding::NON_ALPHANUMERIC,
        );
        for text in [
            format!("redis://me:{encoded}@cache/1"),
            format!("redis+cluster://me:{encoded}@a,b"),
            format!("redis+sentinel://me:{encoded}@a/x?sentinel_password={encoded}"),
        ] {
            let address = RedisAddress::parse(&text).unwrap();
            prop_assert_eq!(address.credentials.password.as_deref(), Some(&*password));
            let printed = address.to_string();
            prop_assert_eq!(RedisAddress::parse(&printed), Ok(hidden(address.clone())));
            for printed in [printed, format!("{address:?}")] {
                prop_assert!(!printed.contains(&password), "{}", printed);
                prop_assert!(!printed.contains(&encoded.to_string()), "{}", printed);
            }
        }
    }
}
