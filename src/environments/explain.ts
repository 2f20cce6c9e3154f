import { SandglassError } from '../errors/index.ts'
import { truncate } from '../support/index.ts'
import { withoutCredentials } from './index-settings.ts'
import { describeTarget, type PythonTarget } from './target.ts'

/** A request to uv, as messages describe it. */
export interface UvRequest {
  readonly requirements: readonly string[]
  readonly target: PythonTarget
  readonly index: string
  readonly excludeNewer: string | undefined
  /** True if only the cache was asked. */
  readonly offline: boolean
}

/** The message for packages that unpack to more than the limit. */
export const TOO_LARGE: string =
  'the packages unpack to more than 20 times the size of their wheels, as an archive bomb does, or to more than the limit of the cache ' +
  '(environments.maxBytes)'
const MAX_CHARS = 20_000
const MAX_SHOWN = 1500

/** Explains a failure of uv from its output, with a remedy. */
export function explainFailure(stderr: string, request: UvRequest): SandglassError {
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
      `the packages ${formatRequirements(request)} cannot be installed: ${said}`,
    )
  }
  const [pattern, code, explain] = rule
  const found = pattern.exec(text)
  const hint = request.offline && FROM_PAGES.has(code) ? ' (environments.offline is set: only the cache was asked)' : ''
  return new SandglassError(
    code,
    `${explain(request, found?.[1] ?? formatRequirements(request))}${hint}. uv said: ${said}`,
  )
}

/** The errors that depend on the versions that an index lists; offline, only those in the cache. */
const FROM_PAGES: ReadonlySet<SandglassError['code']> = new Set(['dependency_conflict', 'dependency_too_new'])

type Rule = readonly [
  pattern: RegExp,
  code: SandglassError['code'],
  explain: (request: UvRequest, name: string) => string,
]

/** The first match counts. No pattern has nested quantifiers, so that matching takes linear time. */
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
    ({ index }) => `the package index ${index} sends more data than fits into the memory limit of the installer`,
  ],
  [
    /Hash mismatch for `([^`]{1,200})`/i,
    'dependency_invalid',
    ({ index }, name) =>
      `the wheel of ${name} does not have the SHA-256 that the index ${index} announced; do not install it`,
  ],
  [
    /Couldn't parse requirement|has invalid metadata|does not match given name|was included as a URL dependency/i,
    'dependency_invalid',
    (request) =>
      `a requirement of ${formatRequirements(request)}, or of one of their dependencies, does not follow PEP 508; use another version`,
  ],
  [
    /(?:Because )?([\w.-]{1,200})(?:[=<>!~][^ ]{0,100})? (?:was not found in the cache|needs to be downloaded from a registry)|network was disabled/i,
    'index_unreachable',
    (_, name) =>
      `environments.offline is set, and the cache does not have ${name}: install it once without that option, or use packages of the cache`,
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
    ({ index }, name) => `the package index ${index} has none of the requested versions of ${name}`,
  ],
  [
    /unsatisfiable|conflict/i,
    'dependency_conflict',
    (request) => `the packages ${formatRequirements(request)} contradict each other`,
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
    () => 'a package is damaged or is not a valid wheel; use another version',
  ],
]

function formatRequirements({ requirements }: UvRequest): string {
  const more = requirements.length > 5 ? ` and ${requirements.length - 5} more` : ''
  return `${requirements.slice(0, 5).join(', ')}${more}`
}
