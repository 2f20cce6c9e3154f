import type { AttemptRecord, RunRecord } from '../journal/index.ts'
import { failedLineOf } from '../script/index.ts'
import { truncate } from '../support/index.ts'
import { callPlace, callText, outcomeText } from './call-text.ts'
import { dataHtml, moreHtml } from './data-html.ts'
import { ChartFrames, PLOTLY } from './chart-frames.ts'
import { displayHtml } from './display-html.ts'
import { msText, plural } from './figures.ts'
import { html, Html } from './html.ts'
import { PAGE_STYLE } from './page-style.ts'
import { pythonHtml } from './python-html.ts'
import { isSuccess } from '../outcomes/index.ts'
import { attemptFacts, endText, type Fact, repetitionText, runFacts } from './run-facts.ts'
import { cutLines, lastLines, nameText } from './foreign-text.ts'
import type { StoredRun } from './stored-run.ts'
import { timelineHtml } from './timeline-html.ts'
import { timelineOf } from './timeline.ts'

/** Texts with more lines are folded. */
const OPEN_LINES = 12
const MAX_TITLE = 80
const MAX_CALLS = 500
/** Maximum rows of each other kind: emitted data, logs, warnings, violations of a line. */
const MAX_ROWS = 50
/** Maximum lines of a script, and of any other text. */
const MAX_SCRIPT = 2000
const MAX_LINES = 200
/** Maximum characters of a value, and of the answer. */
const MAX_DATA = 2000
const MAX_ANSWER = 20_000

/**
 * A task as one self-contained page, without links, to send to a colleague. The only code in it draws charts, in frames.
 * @param plotly the text of plotly.js; without it, charts are not drawn.
 */
export function runPage({ record, events, missing }: StoredRun, plotly?: string): string {
  const charts = new ChartFrames(plotly)
  const attempts = attemptsHtml(record, charts)
  const title = truncate(record.task.trim().replaceAll(/\s+/g, ' '), MAX_TITLE)
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${Html.trust(charts.policy)}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>${record.status}: ${title}</title>
        <style>
          ${PAGE_STYLE}
        </style>
      </head>
      <body>
        <main>
          <header>
            <span class="pill ${toneOf(record.status)}">${record.status}</span>
            <span class="id mono">task ${record.runId}</span>
            <h1>${linesText(record.task.trim())}</h1>
          </header>
          ${outcomeHtml(record)}
          <section aria-label="Facts">${factsHtml(runFacts(record, missing))}</section>
          ${timelineHtml(timelineOf(events))} ${attempts}
          <footer>Written by sandglass show --html</footer>
          ${charts.source}
        </main>
      </body>
    </html> `
  return `${page.toString().trimEnd()}\n`
}

/** True if the page of a task has figures of plotly. */
export function hasCharts({ attempts, steps }: RunRecord): boolean {
  const all = [...attempts, ...steps.flatMap((step) => step.attempts)]
  return all.some(({ displays }) => displays.some(({ data }) => data[PLOTLY] !== undefined))
}

function attemptsHtml({ attempts, steps }: RunRecord, charts: ChartFrames): Html[] {
  const ofSteps = steps.flatMap(({ number, forceFinish, attempts }) =>
    attempts.map((attempt) => {
      const title = `Step ${number}${forceFinish ? ' (to finish)' : ''}, attempt ${attempt.number}`
      return attemptHtml(attempt, title, charts)
    }),
  )
  return [...attempts.map((attempt) => attemptHtml(attempt, `Attempt ${attempt.number}`, charts)), ...ofSteps]
}

function outcomeHtml({ success, finalData, error, partial }: RunRecord): Html {
  if (success)
    return html`<section aria-label="Answer">
      <h2>Answer</h2>
      ${dataHtml(finalData, MAX_ANSWER)}
    </section>`
  const left =
    partial === null
      ? []
      : [
          html`<h3>Partial result</h3>
            ${dataHtml(partial, MAX_ANSWER)}`,
        ]
  return html`<section aria-label="Outcome">
    <h2>No answer</h2>
    <p class="error bad mono">${linesText(error ?? 'the reason is unknown')}</p>
    ${left}
  </section>`
}

function attemptHtml(attempt: AttemptRecord, title: string, charts: ChartFrames): Html {
  const { status, script, generation, prompt, stdout, stderr, traceback, error, repetition, warnings, violations } =
    attempt
  const answer = generation?.answer ?? null
  const word = nameText(status ?? 'unfinished')
  return html`<section aria-label="${title}">
    <div class="head">
      <h2>${title}</h2>
      <span class="pill ${toneOf(status ?? 'unfinished')}">${word}</span
      ><span>${endText(attempt).slice(word.length)}</span>
    </div>
    ${factsHtml(attemptFacts(attempt))} ${script === null ? [] : scriptHtml(script, attempt)}
    ${answer === null ? [] : foldedHtml('Answer without a script', answer)}
    ${error === null || violations.length > 0 ? [] : html`<p class="error bad mono">${linesText(error)}</p>`}
    ${repetition === null ? [] : html`<p class="error warn">It repeats: ${repetitionText(repetition)}</p>`}
    ${callsHtml(attempt)} ${emittedHtml(attempt)} ${displaysHtml(attempt, charts)}
    ${warnings
      .slice(0, MAX_ROWS)
      .map(({ code, message }) => html`<p class="error warn">${nameText(code)}: ${linesText(message)}</p>`)}
    ${moreHtml(warnings.length - MAX_ROWS)} ${foldedHtml('Traceback', traceback ?? '')} ${foldedHtml('stdout', stdout)}
    ${foldedHtml('stderr', stderr)} ${foldedHtml('Prompt', prompt?.text ?? '', false)}
  </section> `
}

function factsHtml(facts: readonly (Fact | readonly [string, Html])[]): Html {
  return html`<dl>
    ${facts.map(
      ([name, text]) =>
        html`<dt>${name}</dt>
          <dd>${text}</dd>`,
    )}
  </dl>`
}

function scriptHtml(script: string, { traceback, violations }: AttemptRecord): Html {
  const failed = failedLineOf(traceback)
  const lines = cutLines(script)
  const shown = lines.slice(0, MAX_SCRIPT)
  const coloured = pythonHtml(shown)
  const rows = shown.map((line, index) => {
    const number = index + 1
    const code = coloured[index] ?? line
    const here = violations.filter((violation) => violation.line === number).slice(0, MAX_ROWS)
    const isMarked = number === failed || here.length > 0
    const notes = here.map(({ column, message, hint, code }) => {
      const before = Array.from(line).slice(0, column).join('').replaceAll(/[^\t]/gu, ' ')
      const note = html`<div class="violation">
        <i></i><code>${before}^ ${linesText(message)} <small>${nameText(code)}</small></code>
      </div>`
      if (hint === '') return note
      return html`${note}
        <div class="violation">
          <i></i><code>${before} <small>hint: ${linesText(hint)}</small></code>
        </div>`
    })
    return html`<div class="${isMarked ? 'line failed' : 'line'}"><i>${number}</i><code>${code}</code></div>
      ${notes}`
  })
  return html`<div class="script" aria-label="Script">${rows}</div>
    ${moreHtml(lines.length - MAX_SCRIPT)}`
}

function callsHtml({ toolCalls }: AttemptRecord): Html {
  if (toolCalls.length === 0) return html``
  const rows = toolCalls.slice(0, MAX_CALLS).map(
    (call) =>
      html`<tr>
        <td class="at">${callPlace(call)}</td>
        <td class="mono">${callText(call)}</td>
        <td class="ms">${call.ms === null ? '–' : msText(call.ms)}</td>
        <td class="mono${call.ok === true ? '' : ' refused'}">${outcomeText(call)}</td>
      </tr> `,
  )
  const more = toolCalls.length - rows.length
  return html`<h3>${plural(toolCalls.length, 'tool call')}</h3>
    <table>
      <thead>
        <tr>
          <th>where</th>
          <th>call</th>
          <th>time</th>
          <th>outcome</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
    ${moreHtml(more)}`
}

function emittedHtml({ intermediates, logs }: AttemptRecord): Html {
  if (intermediates.length + logs.length === 0) return html``
  const emitted = intermediates
    .slice(0, MAX_ROWS)
    .map(({ label, data }) => [nameText(label), dataHtml(data, MAX_DATA)] as const)
  const logged = logs
    .slice(0, MAX_ROWS)
    .map(({ level, message }) => [`log ${nameText(level)}`, html`<pre>${linesText(message)}</pre>`] as const)
  const more = Math.max(0, intermediates.length - MAX_ROWS) + Math.max(0, logs.length - MAX_ROWS)
  return html`<h3>Emitted and logged</h3>
    <div class="data">${factsHtml([...emitted, ...logged])}</div>
    ${moreHtml(more)}`
}

function displaysHtml({ displays }: AttemptRecord, charts: ChartFrames): Html {
  if (displays.length === 0) return html``
  return html`<h3>Shown</h3>
    ${displays.slice(0, MAX_ROWS).map((display) => displayHtml(display, charts))}
    ${moreHtml(displays.length - MAX_ROWS)}`
}

function foldedHtml(name: string, text: string, isOpen: boolean = text.split('\n').length <= OPEN_LINES): Html {
  if (text.trim() === '') return html``
  const body = html`<summary>${name}</summary>
    <pre>${linesText(text)}</pre>`
  return isOpen ? html`<details open>${body}</details>` : html`<details>${body}</details>`
}

/** The last lines of a text, each cut, so that a long text does not hide what follows it. */
function linesText(text: string): string {
  return lastLines(cutLines(text), MAX_LINES).join('\n')
}

function toneOf(status: NonNullable<AttemptRecord['status']> | RunRecord['status']): 'good' | 'warn' | 'bad' {
  if (isSuccess(status)) return 'good'
  return status === 'unfinished' || status === 'cancelled' ? 'warn' : 'bad'
}
