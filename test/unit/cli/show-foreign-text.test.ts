import { describe, expect, test } from 'vitest'
import { html } from '../../../src/cli/html.ts'
import { runPage } from '../../../src/cli/show-html.ts'
import { runText } from '../../../src/cli/show-text.ts'
import { escapeForMessage } from '../../../src/cli/terminal-text.ts'
import { timelineOf } from '../../../src/cli/timeline.ts'
import { violationsText } from '../../../src/cli/violations-text.ts'
import { type JournalBody, type JournalEvent, recordOf } from '../../../src/journal/index.ts'
import { FIRST, HOSTILE, hostileRun } from '../../support/cli/stored-runs.ts'

describe('foreign text', () => {
  const events = hostileRun().map((body, seq): JournalEvent => {
    return { v: 1, run_id: FIRST, seq, at: new Date(Date.UTC(2026, 0, 1, 0, 0, seq)).toISOString(), ...body }
  })

  test.each([true, false])('cannot control a terminal or change the text direction (coloured: %j)', (coloured) => {
    const text = runText({ record: recordOf(events), missing: 0 }, coloured)
    // oxlint-disable-next-line no-control-regex -- removes the colours
    const ours = text.replaceAll(/\u001B\[\d+m/g, '')
    // oxlint-disable-next-line no-control-regex -- control characters must not occur
    expect(ours).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E]/)
    expect(ours).toContain('\\x1b]0;taken\\x07')
    expect(coloured ? text.includes('\u001B[31m') : !text.includes('\u001B')).toBe(true)
  })

  test('is cut if it is long, with the length of the omission', () => {
    const line = 'x'.repeat(1000)
    const place = { step: null, attempt: 1 }
    const bodies = hostileRun().flatMap((body): JournalBody[] => {
      if (body.type === 'script_generated') return [{ ...body, script: line, model: `a\nb${line}` }]
      if (body.type === 'script_checked') return [{ ...body, ok: true, violations: [] }]
      if (body.type === 'intermediate')
        return Array.from({ length: 52 }, () => ({ ...body, label: 'i\nj', data: line }))
      if (body.type === 'log')
        return Array.from({ length: 51 }, () => ({ ...body, ...place, level: 'info', message: line }))
      if (body.type !== 'script_executed') return [body]
      const warnings = Array.from({ length: 60 }, () => ({ code: 'c', message: line }))
      return [{ ...body, stdout: line, stderr: '', traceback: line, error: null, warnings }]
    })
    const long = bodies.map((body, seq): JournalEvent => ({
      v: 1,
      run_id: FIRST,
      seq,
      at: events[0]?.at ?? '',
      ...body,
    }))
    const text = runText({ record: recordOf(long), missing: 0 }, false)
    expect(text.split('\n').filter((one) => one.length > 800)).toEqual([])
    const cut = (head: string): string =>
      `${head}${'x'.repeat(400 - head.length)}… (${600 + head.length} more characters)`
    for (const shown of [
      `    1 | ${cut('')}\n`,
      `    | ${cut('')}\n`,
      `  emitted   ${cut('i j: "').replace('606', '607')}\n`,
      `  log       ${cut('info: ')}\n`,
      `  warning   ${cut('c: ')}\n`,
      '            … 2 more (--json has all)\n',
      '            … 1 more (--json has all)\n',
      '            … 10 more (--json has all)\n',
      `  model     a b${'x'.repeat(77)}…\n`,
    ]) {
      expect(text).toContain(shown)
    }
  })

  test('does not hide later text of a page, however long it is', () => {
    const line = 'x'.repeat(200_000)
    const lines = 'y\n'.repeat(50_000)
    const place = { step: null, attempt: 1 }
    const bodies = hostileRun().flatMap((body): JournalBody[] => {
      if (body.type === 'run_started') return [{ ...body, task: line }]
      if (body.type === 'prompt_written') return [{ ...body, text: `${lines}end of the prompt` }]
      if (body.type === 'script_generated') return [{ ...body, script: `${line}\nemit_result(1)`, answer: line }]
      if (body.type === 'script_checked') return [{ ...body, ok: true, violations: [] }]
      if (body.type === 'intermediate')
        return Array.from({ length: 60 }, (_, index) => ({ ...body, label: `i${index}`, data: line }))
      if (body.type === 'log')
        return Array.from({ length: 60 }, () => ({ ...body, ...place, level: 'info', message: `${line}\nlast log` }))
      if (body.type === 'run_ended') return [{ ...body, error: `${line}\nlast error` }]
      if (body.type !== 'script_executed') return [body]
      const warnings = Array.from({ length: 60 }, () => ({ code: 'c', message: line }))
      return [{ ...body, stdout: `${line}\nlast words`, stderr: `${lines}last of stderr`, traceback: line, warnings }]
    })
    const long = bodies.map(
      (body, seq) => ({ v: 1, run_id: FIRST, seq, at: '2026-01-01T00:00:00.000Z', ...body }) as const,
    )
    const page = runPage({ record: recordOf(long), events: long, missing: 0 })
    const ends = ['end of the prompt', 'emit_result(1)', 'last log', 'last error', 'last words', 'last of stderr']
    const uncoloured = page.replaceAll(/<\/?span[^>]*>/g, '')
    expect(ends.filter((end) => !uncoloured.includes(`${end}<`))).toEqual([])
    expect(page).toContain(`${'x'.repeat(400)}… (199,600 more characters)\nlast words<`)
    expect(page).toContain('… 49,801 lines before\ny')
    expect(page).toContain('… 20 more (--json has all)')
    expect(page.length).toBeLessThan(250_000)
  })

  test('cannot change the direction of our lines, whichever command prints it', () => {
    const violation = { code: '\u202Ec', line: 1, column: 0, message: '\u2067m', hint: '\u200Fh' }
    expect(escapeForMessage('a\u202Eb\u061C\u2069\uD800\r\nc')).toBe('a\\u202eb\\u061c\\u2069\uFFFD\n    c')
    const text = violationsText('\u202Ep', 'x = "\u202Ey"', [violation], false)
    expect(text).toBe(`\\u202ep:1:1: error[\\u202ec]: \\u2067m
  1 | x = "\\u202ey"
    | ^
    = hint: \\u200fh
`)
  })

  test('is escaped in HTML, in texts and in attributes, at any depth', () => {
    const page = html`<p title="${HOSTILE}">${[[HOSTILE], html`<b>${HOSTILE}</b>`]}</p>`.toString()
    expect(page.match(/<[^>]*>/g)?.map((tag) => tag.replace(/ .*/s, ''))).toEqual(['<p', '<b>', '</b>', '</p>'])
    expect(html`${"a'b`c&\u0000\uD800"}`.toString()).toBe('a&#39;b&#96;c&amp;\\x00\uFFFD')
  })

  test('the timeline derives spans from the times of events, and ends open spans', () => {
    expect(timelineOf(events)).toEqual({
      totalMs: 9000,
      rows: [
        {
          step: null,
          attempt: 1,
          spans: [
            { kind: 'model', from: 1000, ms: 1000, name: null },
            { kind: 'check', from: 2000, ms: 1000, name: null },
            { kind: 'call', from: 4000, ms: 1000, name: HOSTILE },
          ],
        },
      ],
    })
    const [, written] = events
    expect(timelineOf(events.slice(0, 2)).rows[0]?.spans).toEqual(
      written === undefined ? [] : [{ kind: 'model', from: 1000, ms: 0, name: null }],
    )
  })
})
