import { SandglassError } from '../errors/index.ts'
import { truncate } from '../support/index.ts'
import { withoutCredentials } from './index-settings.ts'
import { describeTarget, type PythonTarget } from './target.ts'

/** The request to uv, for messages. */
export interface Question {
  readonly requirements: readonly string[]
  readonly target: PythonTarget
  readonly index: string
  readonly excludeNewer: string | undefined
  /** True if only the cache was asked. */
  readonly offline: boolean
}

/** The explanation for packages that unpack to more than the limit. */
export const TOO_LARGE: string =
  'the packages unpack to more than 20 times their wheels, as an archive bomb does, or to more than the whole cache may have ' +
  '(environments.maxBytes)'
const MAX_CHARS = 20_000
const MAX_SHOWN = 1500

/** The error of a failed uv, from its output, with the step that helps. */
export function explainFailure(stderr: string, question: Question): SandglassError {
  const text = withoutCredentials(stderr.slice(0, MAX_CHARS)).trim()
  const said = truncate(
    text
      .replaceAll(/^(?:Using|Resolved|Prepared|Downloading| Downloaded|Installed|warning:) .*$/gm, '')
      .replaceAll(/^(?:error|  cause): /gm, '')
      .replaceAll(/\s*\n\s*/g, ' ')
      .trim(),
    MAX_SHOWN,
  )
  const rule = RULES.find(([pattern]) => pattern.test(text))
  if (rule === undefined) {
    return new SandglassError(
      'dependency_conflict',
      `the packages ${formatRequirements(question)} cannot be installed: ${said}`,
    )
  }
  const [pattern, code, explain] = rule
  const found = pattern.exec(text)
  const hint =
    question.offline && FROM_PAGES.has(code) ? ' (environments.offline is set: only the cache was asked)' : ''
  return new SandglassError(
    code,
    `${explain(question, found?.[1] ?? formatRequirements(question))}${hint}. uv said: ${said}`,
  )
}

/** The errors that depend on what an index lists; offline, that is only what the cache holds. */
const FROM_PAGES: ReadonlySet<SandglassError['code']> = new Set(['dependency_conflict', 'dependency_too_new'])

type Rule = readonly [
  pattern: RegExp,
  code: SandglassError['code'],
  explain: (question: Question, name: string) => string,
]

/** The first that matches counts. Patterns have no repetition of a repetition. */
const RULES: readonly Rule[] = [
  [
    /status code 40[13]|\b40[13] (?:Unauthorized|Forbidden)/i,
    'index_refused',
    ({ index }) =>
      `the package index ${index} refuses access: check its user name and password (in the address, netrc, UV_INDEX_… or keyring, as for uv)`,
  ],
  [
    /No space left on device|os error 28/i,
    'no_space',
    () =>
      'the disk of the package cache is full: free some space, or name another directory with environments.cacheDir',
  ],
  [/File too large|os error 27/i, 'dependency_invalid', () => TOO_LARGE],
  [
    /memory allocation of \d+ bytes failed|out of memory/i,
    'index_unreachable',
    ({ index }) => `the package index ${index} sends more than the memory of the installer holds`,
  ],
  [
    /Hash mismatch for `([^`]{1,200})`/i,
    'dependency_invalid',
    ({ index }, name) => `the wheel of ${name} is not the one that the index ${index} promised: its SHA-256 differs`,
  ],
  [
    /Couldn't parse requirement|has invalid metadata|does not match given name|was included as a URL dependency/i,
    'dependency_invalid',
    (question) =>
      `a requirement of ${formatRequirements(question)}, or of a package that they need, does not follow the rules`,
  ],
  [
    /(?:Because )?([\w.-]{1,200})(?:[=<>!~][^ ]{0,100})? (?:was not found in the cache|needs to be downloaded from a registry)|network was disabled/i,
    'index_unreachable',
    (_, name) =>
      `environments.offline is set, and the cache does not have ${name}: install it once without that option, or ask for what the cache has`,
  ],
  [
    /`([^`]{1,200})` was filtered by `exclude-newer`(?!.*published at)/i,
    'dependency_too_new',
    ({ index, excludeNewer }, name) =>
      `the package index ${index} reports no version of ${name} that was uploaded before the limit environments.excludeNewer (${excludeNewer ?? 'unset'}): ` +
      "ask for an older version, or set excludeNewer: 'none' if this index reports no upload times",
  ],
  [
    /`([^`]{1,200})` was filtered by `exclude-newer`|exclude-newer/i,
    'dependency_too_new',
    ({ excludeNewer }, name) =>
      `${name} was uploaded after the limit environments.excludeNewer (${excludeNewer ?? 'unset'}): ask for an older version or change the limit`,
  ],
  [
    /(?:Because )?([\w.-]{1,200}) was not found in the (?:package registry|provided package locations)/i,
    'dependency_not_found',
    ({ index }, name) => `the package index ${index} has no package ${name}: check its name`,
  ],
  [
    /([\w.-]{1,200})(?:[=<>!~][^ ]{0,100})? (?:has|have) no (?:usable )?wheels|Wheels are required for `([^`]{1,200})`|no wheels? with a matching/i,
    'dependency_no_wheel',
    ({ target }, name) =>
      `there is no wheel of ${name} for ${describeTarget(target)}, and nothing is built from source: ask for another version, ` +
      'or build a wheel yourself (pip wheel -w DIR) and name its directory with environments.wheels',
  ],
  [
    /there (?:are|is) no versions? of ([\w.-]{1,200})|Because only (?=[\w.-]{1,200}[<=>])/i,
    'dependency_conflict',
    ({ index }, name) => `the package index ${index} has no version of ${name} that was asked for`,
  ],
  [
    /unsatisfiable|conflict/i,
    'dependency_conflict',
    (question) => `the packages ${formatRequirements(question)} contradict each other`,
  ],
  [
    /Failed to fetch|error sending request|tcp connect|dns error|timed? ?out|Connection|certificate|Request failed|needed to be downloaded|network was disabled|offline/i,
    'index_unreachable',
    ({ index }) =>
      `the package index ${index} cannot be reached: check the network, the proxy (HTTPS_PROXY) and the address`,
  ],
  [
    /Failed to (?:parse|install|read|unzip|extract|prepare)|invalid|corrupt|archive/i,
    'dependency_invalid',
    () => 'a package is damaged or does not follow the rules of wheels',
  ],
]

function formatRequirements({ requirements }: Question): string {
  const more = requirements.length > 5 ? ` and ${requirements.length - 5} more` : ''
  return `${requirements.slice(0, 5).join(', ')}${more}`
}
