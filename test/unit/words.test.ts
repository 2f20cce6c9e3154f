import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

const IDS = /\b(?:EX|HA|PO|OR|CA|WS)-\d\d\b|\bmission\b(?!\.md)|\bDESIGN\b/

/** Private words of this project with the standard terms that replace them. */
const PRIVATE_WORDS: Readonly<Record<string, { readonly words: RegExp; readonly instead: string }>> = {
  ground: { words: /\bgrounds?\b|\bGround\b/i, instead: 'EngineEnvironment, ScriptHost, or foundation' },
  orphan: { words: /remnant|unremoved|(?<!a)stray/i, instead: 'orphan, resource, or unexpected' },
  outcome: { words: /\bfates?\b/i, instead: 'outcome' },
  end: { words: /\b(?:parting|departure)s?\b/i, instead: 'ConversationEnd' },
  boost: { words: /\bhurr(?:y|ies|ied)\b/i, instead: 'CpuBoost' },
  transcript: { words: /\bGathered\b/, instead: 'RunTranscript' },
  hook: { words: /\bnoticed\(/, instead: 'withDestroyHook()' },
  info: { words: /\bintroduced\(|\bintroduction\b/, instead: 'fetchDaemonInfo()' },
  fixture: { words: /\bbeds?\b/i, instead: 'fixture' },
  checked: {
    words: /\b(?:well_checked|check_around|look_later|look_at|EndLook|_?look_due)\b/,
    instead: 'what the function does',
  },
  fix: { words: /\bmend(?:s|ed|ing)?\b/i, instead: 'fix' },
  task: { words: /\bwork(?:s|ed)? (?:a task |tasks |it )?off\b/i, instead: 'solve' },
  nothing: {
    words: /\bcomes? to nothing\b|\bthere is nothing of\b|\bthe sooner\b|\bwhat there was\b|\bdoes on this machine\b/i,
    instead: 'a plain verb',
  },
  output: { words: /\blast[ _]?words\b/i, instead: 'last output' },
  entry: { words: /\bentrances?\b/i, instead: 'entry point' },
  requirement: { words: IDS, instead: 'the behaviour itself' },
}

/** A comment that circumscribes a thing instead of naming it. */
const CIRCUMSCRIPTION = /(?:\/\*\*?|\/\/|^\s*\*|(?<!#)#|""") ?(?:What|Whether|Where|Who|Which|How)\b/

/** All text for readers, except tests, which may quote rejected words. */
const READ = ['src', 'harness/sandglass_harness', 'docs', 'campaigns', 'bench', 'scripts', 'examples', '*.md']
/** Recorded requirements and cases cite ids; records of campaigns are not rewritten. */
const QUOTES_IDS = /^(?:campaigns|CONTRIBUTING|docs\/(?:reliability|promises|limitations))/

const LINES = readLines()

test.each(Object.entries(PRIVATE_WORDS))('no private word for %s is left', (_, { words, instead }) => {
  const found = LINES.filter(({ place, text }) => words.test(text) && !(words === IDS && QUOTES_IDS.test(place)))
  expect(found.map(({ place, text }) => `${place}: ${text.trim()} (say: ${instead})`)).toEqual([])
})

test('a comment says what a thing is and does not begin with a question word', () => {
  const found = LINES.filter(({ place, text }) => !place.includes('.md:') && CIRCUMSCRIPTION.test(text))
  expect(found.map(({ place, text }) => `${place}: ${text.trim()}`)).toEqual([])
})

/** A function or private method with the name of a state, such as `changed()`: a reader cannot tell what it does. */
const PARTICIPLE = /(?:\bfunction\*? |^ +(?:async )?\*?#|^def _?)(?!feed|need|seed|own)[a-z]+(?:ed|wn)[(<]/

test('functions are verbs, not bare participles', () => {
  const found = LINES.filter(({ place, text }) => /^(?:src|harness)\//.test(place) && PARTICIPLE.test(text))
  expect(found.map(({ place, text }) => `${place}: ${text.trim()}`)).toEqual([])
})

test('the glossary has at most 30 terms', () => {
  const [, glossary = ''] = /## Glossary\n([^]*?)\n## /.exec(readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8')) ?? []
  const terms = [...glossary.matchAll(/^\| (?!term \|)([a-z][^|]*)\|/gm)].flatMap(([, term = '']) => term.split(','))
  expect(terms.length).toBeGreaterThan(20)
  expect(terms.length).toBeLessThanOrEqual(30)
})

function readLines(): { place: string; text: string }[] {
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...READ], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const files = stdout.split('\0').filter((file) => /\.(?:ts|py|md)$/.test(file))
  expect(files.length).toBeGreaterThan(100)
  return files.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .map((text, index) => ({ place: `${file}:${index + 1}`, text })),
  )
}
