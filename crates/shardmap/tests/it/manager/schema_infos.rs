//! Notes on sharded tables.

use rangehold_shardmap::SchemaInfo;

use super::world::code;

fn a_note() -> SchemaInfo {
    let mut info = SchemaInfo::default();
    info.add_sharded("public", "orders", "tenant").unwrap();
    info.add_reference("public", "countries").unwrap();
    info
}

/// Acceptance 144: a table is noted once, of whichever sort.
#[test]
fn a_table_is_noted_once() {
    let mut info = a_note();
    assert_eq!(code(info.add_sharded("public", "countries", "x")), "SchemaInfo/TableInfoAlreadyPresent");
    assert_eq!(code(info.add_reference("public", "orders")), "SchemaInfo/TableInfoAlreadyPresent");
    assert!(info.remove("public", "orders") && !info.remove("public", "orders"));
    assert_eq!((info.sharded().count(), info.reference().count()), (0, 1));
}

on_both_stores! {
    /// Acceptance 144, 145, 146, 147: notes are added, replaced, removed and listed by names of any characters.
    async fn notes_come_and_go(world) {
        let infos = world.manager().await.schema_infos();
        let odd = "a'b\"c <&> \u{1f600} %_";
        infos.add(odd, &a_note()).await.unwrap();
        infos.add("other", &SchemaInfo::default()).await.unwrap();
        assert_eq!(code(infos.add(odd, &a_note()).await), "SchemaInfo/SchemaInfoNameConflict");
        assert_eq!(infos.get(odd).await.unwrap(), a_note());
        infos.replace(odd, &SchemaInfo::default()).await.unwrap();
        assert_eq!(infos.get(odd).await.unwrap(), SchemaInfo::default());
        assert_eq!(infos.all().await.unwrap().len(), 2);
        assert!(infos.remove(odd).await.unwrap() && !infos.remove(odd).await.unwrap());
        assert_eq!(code(infos.get(odd).await), "SchemaInfo/SchemaInfoNameDoesNotExist");
        assert_eq!(code(infos.replace(odd, &a_note()).await), "SchemaInfo/SchemaInfoNameDoesNotExist");
        assert!(infos.try_get(odd).await.unwrap().is_none());
    }
}
