//! The risk of SQL.

use windlass_spec::RiskLevel::{self, Irreversible, Reversible, ReversibleWithDelay};

use super::super::sql::{assess, assess_if_sql};

#[track_caller]
fn all(level: RiskLevel, texts: &[&str]) {
    for text in texts {
        let assessed = assess(text);
        assert_eq!(assessed.level, level, "{text}: {}", assessed.what);
    }
}

#[test]
fn sql_queries_are_reversible() {
    all(
        Reversible,
        &[
            "SELECT 1",
            "select * from users where name = 'drop table users; delete from x' -- delete",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "SELECT count(*), replace(a, 'x', 'y'), date_trunc('day', t) FROM t GROUP BY 1",
            "EXPLAIN DELETE FROM t",
            "SHOW TABLES",
            "DESCRIBE t",
            "VALUES (1), (2)",
            "SELECT a FROM t FOR UPDATE",
            "SELECT 1; SELECT 2;",
            "SELECT \"delete\" FROM \"drop\"",
            "SELECT `a` FROM `t`",
            "SELECT a::text, b->>'c' FROM t WHERE d ILIKE '%x%'",
            "SELECT a FROM t WHERE b = $1",
            "PRAGMA table_info(t)",
            "SELECT (SELECT max(a) FROM (SELECT a FROM (SELECT a FROM t) x) y) FROM z WHERE w IN (SELECT w FROM v WHERE u = (SELECT min(u) FROM s))",
            "SELECT coalesce(nullif(trim(lower(concat(upper(substr(a, 1, (2 + (3 * 4)))), b))), ''), 'x') FROM t",
        ],
    );
}

#[test]
fn undoable_sql_changes_are_reversible_with_delay() {
    all(
        ReversibleWithDelay,
        &[
            "INSERT INTO t (a) VALUES (1)",
            "UPDATE t SET a = 1 WHERE b = 2",
            "CREATE TABLE t (a int)",
            "CREATE INDEX i ON t (a)",
            "ALTER TABLE t ADD COLUMN a int",
            "SELECT * INTO u FROM t",
            "CREATE TABLE u AS SELECT * FROM t",
            "GRANT SELECT ON t TO u",
            "WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a",
            "SELECT nextval('s')",
            "SELECT create_user('x')",
            "BEGIN; INSERT INTO t VALUES (1); COMMIT",
        ],
    );
}

#[test]
fn permanent_sql_changes_are_irreversible() {
    all(
        Irreversible,
        &[
            "DELETE FROM t WHERE a = 1",
            "TRUNCATE t",
            "DROP TABLE t",
            "UPDATE t SET a = 1",
            "ALTER TABLE t DROP COLUMN a",
            "SELECT 1; DROP TABLE t",
            "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "EXPLAIN ANALYZE DELETE FROM t",
            "EXPLAIN (ANALYZE) DELETE FROM t",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
            "SELECT \"pg_terminate_backend\"(1)",
            "SELECT pg_catalog.pg_terminate_backend (1)",
            "SELECT a FROM (SELECT lo_unlink(1) AS a) b",
            "SELECT purge_old_rows()",
            "SELECT delete_user(5)",
            "CALL anything()",
            "EXEC xp_cmdshell 'dir'",
            "COPY t TO PROGRAM 'sh'",
            "COPY t FROM PROGRAM 'sh'",
            "SELECT * FROM t INTO OUTFILE '/tmp/x'",
            "REPLACE INTO t VALUES (1)",
            "CREATE OR REPLACE TABLE t (a int)",
            "DO $$ BEGIN DELETE FROM t; END $$",
            "REVOKE ALL ON t FROM u",
            "PREPARE p AS DELETE FROM t",
            "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
        ],
    );
}

#[test]
fn sql_that_does_not_parse_is_irreversible() {
    all(
        Irreversible,
        &[
            "DLETE FROM t",
            "SELECT * FORM t WHERE",
            "'",
            "hello there",
            "SELECT 'a",
            "\u{0}",
        ],
    );
}

#[test]
fn gravest_dialect_reading_counts() {
    all(
        Irreversible,
        &[
            // If a backslash escapes, the first string ends before the next statement.
            r"SELECT '\''; DROP TABLE t; -- '",
            // If it does not, this one does.
            r"SELECT '\'; DROP TABLE t; --'",
            // Some databases run such comments.
            "SELECT 1 /*! ; DROP TABLE t */",
            // Comments nest in some databases and not in others.
            "SELECT 1 /* /* */ ; DROP TABLE t -- */",
            "SELECT 1 --1; DROP TABLE t\n",
            "SELECT 1 # 2; DROP TABLE t\n",
        ],
    );
}

#[test]
fn question_that_starts_like_sql_is_not_sql() {
    for text in [
        "update windows drivers",
        "select the best laptop",
        "how to delete a file",
        "",
        "drop shipping",
        "with friends",
        "cats",
    ] {
        assert_eq!(assess_if_sql(text), None, "{text}");
    }
    let level = |text| assess_if_sql(text).map(|assessed| assessed.level);
    assert_eq!(level("DROP TABLE t"), Some(Irreversible));
    assert_eq!(level(";DROP TABLE t"), Some(Irreversible));
    assert_eq!(level("  (select 1)"), Some(Reversible));
    assert_eq!(level("/* x */ delete from t"), Some(Irreversible));
    assert_eq!(
        level("mutation { deleteUser(id: 1) { id } }"),
        Some(Irreversible)
    );
    assert_eq!(
        level("mutation { setName(id: 1) { id } }"),
        Some(ReversibleWithDelay)
    );
    assert_eq!(level("query { user { id } }"), None);
}
