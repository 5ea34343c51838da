//! Replays each file `recorded/*.txt` against a fresh service. `recorded/README.md` describes their format.

use crate::replay;

macro_rules! replayed {
    ($($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                replay::file(concat!(stringify!($name), ".txt")).await;
            }
        )*

        #[test]
        fn every_file_is_replayed() {
            assert_eq!(replay::files(), [$(concat!(stringify!($name), ".txt")),*]);
        }
    };
}

replayed! { acl auth azurite batch errors get insert paging properties query tables update }
