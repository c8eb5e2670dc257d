use super::*;

fn rows(rows: &[[&str; 2]]) -> Rows {
    rows.iter()
        .map(|row| row.map(str::to_owned).to_vec())
        .collect()
}

#[test]
fn rows_are_added_up_by_the_id_they_contain() {
    let ids = ["a1".to_owned(), "b2".to_owned()];
    let seen = rows(&[["order-a1", "1"], ["a1", "2.00"], ["c3", "9"]]);
    assert_eq!(count(&seen, &ids), Ok(vec![3, 0]));
}

#[test]
fn rows_without_an_id_are_nobodys() {
    let ids = ["a1".to_owned(), UNNAMED.to_owned()];
    let seen = rows(&[["", "2"], ["a1", "1"], ["NULL", "1"]]);
    assert_eq!(count(&seen, &ids), Ok(vec![1, 3]));
}

#[tokio::test(start_paused = true)]
async fn probe_that_never_answers_is_given_up() {
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/counts", deaf.local_addr().unwrap());
    let why = ask(&url).await.unwrap_err();
    assert!(why.contains("no answer within"), "{why}");
}

#[test]
fn redis_keys_hold_as_much_as_they_say() {
    let text = |text: &str| redis::Value::BulkString(text.as_bytes().to_vec());
    assert_eq!(how_many(&redis::Value::Int(3)), "3");
    assert_eq!(how_many(&text("2")), "2");
    assert_eq!(how_many(&text("sent")), "1");
    assert_eq!(how_many(&redis::Value::Nil), "0");
    let below = vec![vec!["a1".to_owned(), how_many(&text("-1"))]];
    assert!(count(&below, &["a1".to_owned()]).is_err());
}

#[test]
fn what_is_no_count_is_an_error() {
    let ids = ["a1".to_owned()];
    assert!(count(&rows(&[["a1", "many"]]), &ids).is_err());
    assert!(count(&vec![vec!["a1".to_owned()]], &ids).is_err());
    assert_eq!(count(&rows(&[["a1", ""]]), &ids), Ok(vec![0]));
}
