//! Golden scripts for the map, and the command language.
//!
//! `RANGEHOLD_BLESS=1 cargo nextest run -p rangehold-map` writes the present outputs into
//! the files. Read the difference before you keep it.
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use rangehold_map::plan::Standing;
use rangehold_map::script::{
    Asked, CauseName, Command, KeyName, Live, MapScript, Names, Observed, Profile, Step, TableName, TableRef,
    Target, golden, parse, parse_lines,
};
use rangehold_map::{BucketId, Generation, Key, ObjectKey, ObjectRow, RangeId, RangeMap, ServerId, TableId};

#[test]
fn golden_scripts_have_their_recorded_outputs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "there are no scripts in {}", folder.display());
    for file in files {
        let golden = std::fs::read_to_string(&file).unwrap();
        let mut script = MapScript::new();
        let now = golden::replay(&golden, |line| {
            let planned = line.strip_prefix("execute").map(|profile| by_hand(&script, profile));
            let said = script.run_line(line);
            if let Some(planned) = planned {
                assert_eq!(
                    script.map(),
                    &planned,
                    "{line} does not do what is planned in {}",
                    file.display()
                );
            }
            said
        });
        if std::env::var_os("RANGEHOLD_BLESS").is_some() {
            std::fs::write(&file, now).unwrap();
        } else {
            let differs = now.lines().zip(golden.lines()).position(|(now, golden)| now != golden);
            let line = differs.map_or(golden.lines().count(), |line| line + 1);
            assert!(now == golden, "{} is another from line {line} on; it is now:\n{now}", file.display());
        }
    }
}

/// The map after the commands of a plan, which is a script.
fn by_hand(script: &MapScript, profile: &str) -> RangeMap {
    let mut script = script.clone();
    for command in parse(&script.run_line(&format!("plan{profile}"))).unwrap() {
        script.run(&command).unwrap();
    }
    script.map().clone()
}

fn any_text() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        '"',
        '\\',
        '/',
        ':',
        ' ',
        '@',
        '*',
        '#',
        '=',
        '\n',
        '\u{0}',
        '\u{a0}',
        'é',
        'u',
        '{',
        '\u{1F600}',
    ]);
    let letters = prop_oneof![1 => tricky, 2 => prop::char::range('a', 'f'), 1 => any::<char>()];
    prop::collection::vec(letters, 0..6).prop_map(|letters| letters.into_iter().collect())
}

fn any_account() -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop_oneof![Just("other".to_owned()), Just("0x10".to_owned())])
}

fn any_table() -> impl Strategy<Value = TableName> {
    let name = prop::sample::select(vec!["marathon", "Ten", "start"])
        .prop_map(|name| TableRef::Name(name.to_owned()));
    let table = prop_oneof![name, any::<u64>().prop_map(|id| TableRef::Id(TableId(id)))];
    (any_account(), table).prop_map(|(account, table)| TableName { account, table })
}

fn any_key_name() -> impl Strategy<Value = KeyName> {
    prop_oneof![
        Just(KeyName::Start),
        Just(KeyName::Entities),
        any_account().prop_map(|account| KeyName::Catalogue { account }),
        any_account().prop_map(|account| KeyName::Account { account }),
        any_table().prop_map(KeyName::Table),
        (any_table(), any_text())
            .prop_map(|(table, partition_key)| KeyName::Partition { table, partition_key }),
        (any_table(), any_text(), any_text()).prop_map(|(table, partition_key, row_key)| KeyName::Entity {
            table,
            partition_key,
            row_key
        }),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(KeyName::Bytes),
    ]
}

fn any_target() -> impl Strategy<Value = Target> {
    let id = any::<u64>().prop_map(RangeId);
    prop_oneof![
        (id, prop::option::of(any::<u64>().prop_map(Generation)))
            .prop_map(|(id, generation)| Target::Range { id, generation }),
        any_key_name().prop_map(Target::Holding),
    ]
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(0.1), 0.0..1e9, (0..10_000u32).prop_map(f64::from)]
}

fn any_cause() -> impl Strategy<Value = CauseName> {
    prop_oneof![
        any_key_name().prop_map(CauseName::Split),
        (any_number(), any_key_name()).prop_map(|(share, key)| CauseName::HotKey(share, key)),
        any_number().prop_map(CauseName::Append),
        any_number().prop_map(CauseName::Prepend),
        any_number().prop_map(CauseName::Scan),
        Just(CauseName::Unclear),
    ]
}

fn any_asked() -> impl Strategy<Value = Asked> {
    let server = any::<u64>().prop_map(ServerId);
    prop_oneof![
        (any_target(), any_key_name()).prop_map(|(range, at)| Asked::Split { range, at }),
        any_key_name().prop_map(|at| Asked::Split { range: Target::Holding(at.clone()), at }),
        (any_target(), any_target()).prop_map(|(left, right)| Asked::Merge { left, right }),
        (any_target(), server).prop_map(|(range, to)| Asked::Move { range, to }),
    ]
}

fn any_observed() -> impl Strategy<Value = Observed> {
    (any_number(), prop::option::of(any_number()), any::<u64>(), prop::option::of(any_cause()), 0..3u32)
        .prop_map(|(rate, peak, bytes, cause, crashes)| Observed { rate, peak, bytes, cause, crashes })
}

fn any_command() -> impl Strategy<Value = Command> {
    let profile = || prop::sample::select(vec![Profile::Fast, Profile::Cloud]);
    let standing = prop::sample::select(vec![Standing::Serving, Standing::Leaving, Standing::Dead]);
    let table = (any_account(), Just("marathon".to_owned()));
    prop_oneof![
        table.prop_map(|(account, name)| Command::Table { account, name }),
        (any::<u64>().prop_map(ServerId), prop::option::of(any_number()), standing)
            .prop_map(|(server, capacity, standing)| Command::Server { server, capacity, standing }),
        Just(Command::Map),
        Just(Command::Check),
        any_key_name().prop_map(Command::Find),
        any_asked().prop_map(|asked| Command::Change { step: Step::Begin, asked }),
        any_asked().prop_map(|asked| Command::Change { step: Step::Whole, asked }),
        any_target().prop_map(|range| Command::Change { step: Step::Whole, asked: Asked::Offline(range) }),
        any_target().prop_map(|range| Command::Change { step: Step::Whole, asked: Asked::Online(range) }),
        any_target().prop_map(Command::Done),
        any_target().prop_map(Command::Undo),
        (any_target(), any_observed()).prop_map(|(range, observed)| Command::Observe { range, observed }),
        (0..100_000_000u64).prop_map(|ms| Command::Wait(Duration::from_millis(ms))),
        profile().prop_map(Command::Plan),
        profile().prop_map(Command::Execute),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_command_is_read_as_it_was_written(command in any_command()) {
        let line = command.to_string();
        prop_assert_eq!(parse(&line), Ok(vec![command]), "{}", line);
    }

    /// No text makes the parser panic, and a command that it reads is written back as the same command.
    #[test]
    fn every_text_is_read_or_refused(
        command in any_command(),
        cut in any::<prop::sample::Index>(),
        with in any_text(),
    ) {
        let mut line: Vec<char> = command.to_string().chars().collect();
        let at = cut.index(line.len() + 1);
        line.splice(at..(at + 1).min(line.len()), with.chars());
        let line: String = line.into_iter().collect();
        if let Ok(command) = line.parse::<Command>() {
            prop_assert_eq!(command.to_string().parse(), Ok(command));
        }
    }

    /// Keys that are stored, and the ends of partitions, tables and accounts, each in both directions.
    #[test]
    fn the_written_form_of_a_stored_key_reads_back(
        key in prop_oneof![
            any_stored().prop_map(|key| key.encode()),
            (any_stored(), any::<prop::sample::Index>()).prop_map(|(key, cut)| {
                let bytes = key.encode();
                bytes[..cut.index(bytes.len() + 1)].to_vec()
            }),
            prop::collection::vec(any::<u8>(), 0..12),
        ],
    ) {
        let mut names = Names::new("acct");
        names.add_table(None, "marathon", TableId(1));
        names.add_table(Some("other"), "marathon", TableId(2));
        names.add_bucket("photos", BucketId(1));
        let name = names.name(&key);
        let written = name.to_string();
        prop_assert_eq!(names.key(&written.parse().unwrap()), Ok(key), "{}", written);
    }
}

fn any_stored() -> impl Strategy<Value = Key> {
    let account = || prop::sample::select(vec!["acct", "other", "third"]).prop_map(str::to_owned);
    prop_oneof![
        1 => account().prop_map(|account| Key::ServiceProperties { account }),
        4 => (account(), 0..4u64, any_text(), any_text()).prop_map(|(account, table, partition_key, row_key)| {
            Key::Entity { account, table: TableId(table), partition_key, row_key }
        }),
        4 => (0..3u64, any_text()).prop_map(|(bucket, name)| {
            Key::Object(ObjectKey { bucket: BucketId(bucket), name: name.into(), row: ObjectRow::Head })
        }),
    ]
}

#[test]
fn keys_are_written_for_people() {
    let mut names = Names::new("acct");
    names.add_table(None, "Marathon", TableId(7));
    names.add_table(Some("other"), "Marathon", TableId(7));
    names.add_bucket("photos", BucketId(17));
    for (written, bytes) in [
        ("start", "10"),
        ("catalogue", "10 61636374 00"),
        ("other:catalogue", "10 6f74686572 00"),
        ("entities", "20"),
        ("*", "20 61636374 00"),
        ("Marathon/*", "20 61636374 00 0000000000000007"),
        ("Marathon/Half", "20 61636374 00 0000000000000007 48616c66 00"),
        (r#"Marathon/"10 km""#, "20 61636374 00 0000000000000007 3130206b6d 00"),
        (r#"Marathon/"""#, "20 61636374 00 0000000000000007 00"),
        ("Marathon/Half/Ann", "20 61636374 00 0000000000000007 48616c66 00 416e6e 00"),
        ("#8/Half", "20 61636374 00 0000000000000008 48616c66 00"),
        ("other:Marathon/*", "20 6f74686572 00 0000000000000007"),
        ("other:#9/*", "20 6f74686572 00 0000000000000009"),
        ("0x20616363740000", "20 61636374 00 00"),
        ("gs://*", "30"),
        ("gs://photos/*", "30 0000000000000011"),
        ("gs://photos/2024/a.jpg", "30 0000000000000011 323032342f612e6a7067 00"),
        (r#"gs://photos/"*""#, "30 0000000000000011 2a 00"),
        ("gs://#18/a", "30 0000000000000012 61 00"),
    ] {
        let bytes: Vec<u8> = bytes.replace(' ', "").as_bytes().chunks(2).map(unhex).collect();
        assert_eq!(names.name(&bytes).to_string(), written);
        assert_eq!(names.key(&written.parse().unwrap()), Ok(bytes), "{written}");
    }
    assert_eq!(names.key(&"marathon/Half".parse().unwrap()), names.key(&"Marathon/Half".parse().unwrap()));
    names.add_table(None, "marathon", TableId(12));
    let before = names.key(&"#7/Half".parse().unwrap()).unwrap();
    assert_eq!(names.name(&before).to_string(), "#7/Half", "the table that had the name before");
}

fn unhex(digits: &[u8]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
}

#[test]
fn an_error_names_the_line_of_the_script() {
    let script = "# two commands\ntable marathon\n\n  map  \n";
    let table = Command::Table { account: None, name: "marathon".to_owned() };
    assert_eq!(parse(script), Ok(vec![table, Command::Map]));
    let error = parse("map\n\nsplit\n").unwrap_err().to_string();
    assert_eq!(error, "line 3: split takes other words: split KEY, or split RANGE at KEY");
}

#[test]
fn a_replay_keeps_comments_and_replaces_outputs() {
    let file = "# A comment.\n\none\ntwo\n----\nold\n\nsilent\n----\nold\n\n# New.\nthree\n";
    let mut lines = Vec::new();
    let said = |line: &str| match line {
        "silent" => String::new(),
        _ => format!("{line} said\n\n"),
    };
    let now = golden::replay(file, |line| {
        lines.push(line.to_owned());
        said(line)
    });
    let expected =
        "# A comment.\n\none\ntwo\n----\none said\ntwo said\n\nsilent\n\n# New.\nthree\n----\nthree said\n";
    assert_eq!(now, expected);
    assert_eq!(lines, ["one", "two", "silent", "three"]);
    assert_eq!(golden::replay(&now, said), now);
}

#[test]
fn a_replay_stops_at_the_command_that_fails() {
    let file = "one\ntwo\n----\nold\n\n# Then.\nthree\nfails\nnever\n";
    let (text, ended) = golden::replay_until(file, |number, line| match line {
        "fails" => Err(number),
        _ => Ok(format!("{line} said")),
    });
    assert_eq!(ended, Err(8));
    assert_eq!(text, "one\ntwo\n----\none said\ntwo said\n\n# Then.\nthree\nfails\n----\nthree said\n");
}

/// The outputs of a golden file are not commands, and commands keep their line numbers.
#[test]
fn a_golden_file_is_a_script() {
    let lines = parse_lines("map\n----\nversion 1, next range r2\n\ncheck\n").unwrap();
    let lines: Vec<_> = lines.into_iter().map(|line| (line.number, line.command)).collect();
    assert_eq!(lines, [(1, Command::Map), (5, Command::Check)]);
}

#[test]
fn a_running_service_accepts_questions_and_changes() {
    let live = |line: &str| line.parse::<Command>().unwrap().live();
    for line in ["table marathon", "map", "check", "find t/a", "split t/a", "merge r1 r2", "move r1 to s2"] {
        assert!(live(line).is_ok(), "{line}");
    }
    assert_eq!(live("wait 2s"), Ok(Live::Wait(Duration::from_secs(2))));
    for line in
        ["server s2", "begin split t/a", "done r1", "undo r1", "observe r1 rate=5", "plan", "execute cloud"]
    {
        let refused = live(line).unwrap_err().to_string();
        let says = format!(
            "{} works only on a map in memory: a running service",
            &line[..line.find(' ').unwrap_or(line.len())]
        );
        assert!(refused.starts_with(&says), "{refused}");
    }
}
