//! One page that needs nothing else: the table, and a drawing of what broke.

use super::svg::svg;
use super::wording::{self, escape};
use crate::judge::verdict::{Pattern, Verdict};
use crate::report::{AttackReport, Report};

const STYLE: &str = include_str!("page.css");

/// The whole page.
#[must_use]
pub fn html(report: &Report) -> String {
    let name = escape(&report.scenario);
    let rows: String = report.attacks.iter().map(row).collect();
    let broken: String = report.attacks.iter().filter_map(section).collect();
    let unseen = report.unseen.iter();
    let unseen: String = unseen
        .map(|it| format!("<li>{}</li>", escape(it)))
        .collect();
    let unprobed = report.unprobed.iter();
    let unprobed = unprobed.map(|it| {
        format!(
            "<li>{}: written, and looked at by no effect</li>",
            escape(it)
        )
    });
    let unseen = unprobed.collect::<String>() + &unseen;
    let early = report.ended_early.iter();
    let early = early.map(|why| format!("<p>Ended early: {}</p>\n", escape(why)));
    let early: String = early.collect();
    let last = super::text(report);
    let last = escape(last.trim_end().lines().last().unwrap_or_default());
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>semel prove: {name}</title>\n<style>{STYLE}</style>\n\
         <h1>{name}</h1>\n<p class=\"conclusion\">{last}</p>\n{early}\
         <table><tr><th>attack<th>what is done<th>verdict<th>trials<th>hit<th></tr>\n{rows}</table>\n{broken}\
         <h2>What this cannot see</h2><ul>{unseen}</ul></html>\n"
    )
}

fn row(attacked: &AttackReport) -> String {
    let verdict = wording::verdict(&attacked.verdict);
    format!(
        "<tr class=\"{}\"><td>{}<td>{}<td>{verdict}<td>{}<td>{}<td>{}</tr>\n",
        verdict.replace(' ', "-"),
        attacked.attack,
        attacked.attack.does(),
        attacked.trials,
        attacked.hits,
        escape(&wording::remarks(attacked)),
    )
}

fn section(attacked: &AttackReport) -> Option<String> {
    let Verdict::Broken(broken) = &attacked.verdict else {
        return None;
    };
    let unrecognised = || format!("<p>{}</p>", wording::unrecognised(broken.how));
    let pattern = broken.pattern.as_ref().map_or_else(unrecognised, |pattern| {
        let Pattern { name, evidence, is, instead } = pattern;
        let [name, evidence, is, instead] = [name, evidence.as_str(), is, instead].map(escape);
        format!("<p><b>{name}</b></p><p>Seen: {evidence}.</p><p>It means: {is}</p><p>Instead: {instead}</p>")
    });
    Some(format!(
        "<section><h2>{}: {}</h2><p>{}</p>{pattern}\n<div class=\"drawing\">{}</div></section>\n",
        attacked.attack,
        wording::how(broken.how),
        escape(&broken.seen),
        svg(&broken.timeline),
    ))
}
