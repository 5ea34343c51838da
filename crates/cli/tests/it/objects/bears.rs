//! `bucket rates`: what a bucket of a server bears, and which of its names scale.

use rangehold_testkit::http::{Connection, Request};
use serde_json::Value;

use super::Home;

#[test]
fn the_rates_of_a_bucket_are_shown_as_a_table_and_as_json() {
    let home = Home::open_with(&["--profile", "cloud", "--rate-scale", "0.01", "--time-scale", "20"]);
    home.says(&["bucket", "create", "gs://photos"]);
    let expected = "gs://photos bears 10 writes/s and 50 reads/s, in one part\n\n\
        names from     bears writes/s, reads/s  asked writes/s, reads/s  used\n\
        gs://photos/*  10, 50                   0, 0\n\n\
        gs://photos/*: does not grow: less than half of what it bears is asked for\n\n\
        nothing is known about names yet: while a tenth of the threshold or more is asked for, names are sampled for 15 s at a \
        time, and each sample is compared with the one before\n";
    assert_eq!(home.says(&["bucket", "rates", "gs://photos"]), expected);
    let told = home.says(&["bucket", "rates", "gs://photos", "--output", "json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((&told["bucket"], &told["spans"][0]["low"]), (&"photos".into(), &"gs://photos/*".into()));
    assert!(home.fails(&["bucket", "rates", "gs://none"]).contains("there is no bucket \"none\""));
    assert!(home.fails(&["bucket", "rates", "gs://photos/a"]).contains("is not a bucket"));
    let fast = Home::open();
    fast.says(&["bucket", "create", "gs://photos"]);
    let refused = fast.fails(&["bucket", "rates", "gs://photos"]);
    assert!(refused.contains("start the server with --profile cloud"), "{refused}");
}

/// Names are sampled for three seconds at a time. Objects are written until all is seen, however long that takes.
#[test]
fn people_see_which_of_their_names_scale() {
    const WRITES_MAX: u64 = 5_000;
    const SHOWN_EVERY: u64 = 16;
    let home = Home::open_with(&["--profile", "cloud", "--rate-scale", "0.02", "--time-scale", "100"]);
    home.says(&["bucket", "create", "gs://photos"]);
    let mut connection = Connection::open(home.server.objects).expect("the server listens");
    let mut write = |name: &str| {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        connection.send(&Request::new("POST", &target, &[], b"x")).expect("an answer");
    };
    let mut said = String::new();
    for number in 1..=WRITES_MAX {
        write(&format!("images%2Fclouds%2F{number}.jpg"));
        write(&format!("images%2Fanimals%2F{:016x}%2F1.jpg", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        if number.is_multiple_of(SHOWN_EVERY) {
            said = home.says(&["bucket", "rates", "gs://photos"]);
            if ["animals", "clouds"]
                .iter()
                .all(|folder| said.contains(&format!("under \"images/{folder}/\"")))
            {
                break;
            }
        }
    }
    let line = |folder: &str| {
        let begin = format!("writes: names under \"images/{folder}/\" (");
        said.lines().find_map(|line| line.strip_prefix(&begin)).unwrap_or_else(|| panic!("{folder}: {said}"))
    };
    assert!(line("animals").contains("of the requests) scale: they are spread"), "{said}");
    let clouds = line("clouds");
    assert!(clouds.contains("of the requests) do not scale: each new one is above those before"), "{said}");
    let (_, advice) = clouds.split_once("the first 6 hex digits of its MD5: \"").expect("advice");
    let (hash, names) = advice.split_once('-').expect("a hash in front");
    assert!(hash.len() == 6 && hash.chars().all(|digit| digit.is_ascii_hexdigit()), "{advice}");
    let (better, name) = names.split_once("\" in place of \"").expect("two names");
    assert_eq!(format!("{better}\""), name);
    assert!(name.starts_with("images/clouds/"), "{advice}");
}
