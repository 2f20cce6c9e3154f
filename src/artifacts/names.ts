import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import type { ArtifactSession } from './service.ts'

/** The name of an artifact, and its version if given. */
export interface ArtifactRef {
  readonly name: string
  readonly version: number | null
}

const MAX_NAME_BYTES = 512
const MAX_ID_BYTES = 256
const MAX_MIME = 255
const USER_PREFIX = 'user:'
const SESSION_KEYS: readonly string[] = ['appName', 'userId', 'sessionId']
/** Control and format characters, line ends, and halves of surrogate pairs. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const VERSION_SUFFIX = /^(?<name>.*)@(?<version>[0-9]+)$/s
const TOKEN = "[A-Za-z0-9!#$&^_.+'*%`|~-]+"
const MIME = new RegExp(`^${TOKEN}/${TOKEN}(?: *; *${TOKEN}=(?:${TOKEN}|"[ !#-\\[\\]-~]*"))*$`)

/**
 * Splits `name@version`. Only decimal digits after the last `@` are a version; any other text is a name.
 * @throws SandglassError `invalid_request` for an empty name, and for a version that is not a safe integer.
 */
export function parseArtifactRef(ref: string): ArtifactRef {
  if (typeof ref !== 'string') throw invalid(`artifact reference: must be a string, not ${formatValue(ref)}`)
  const { name = ref, version } = VERSION_SUFFIX.exec(ref)?.groups ?? {}
  if (name === '')
    throw invalid(`artifact reference ${formatValue(ref)}: the name is empty; write NAME or NAME@VERSION`)
  if (version === undefined) return { name, version: null }
  const parsed = Number(version)
  if (!Number.isSafeInteger(parsed)) throw invalid(`artifact reference ${formatValue(ref)}: the version is too large`)
  return { name, version: parsed }
}

/** True for the names of artifacts that belong to a user, not to one session: they begin with `user:`. */
export function isUserArtifact(name: string): boolean {
  return name.startsWith(USER_PREFIX)
}

/**
 * Returns the name if it is valid.
 * @throws SandglassError `invalid_request` for a name that is not a relative path of printable text, or ends like a version.
 */
export function checkArtifactName(name: string): string {
  const problem = nameProblem(name)
  if (problem === undefined) return name
  throw invalid(`artifact name ${formatValue(name)}: ${problem}`)
}

/** @throws SandglassError `invalid_request`. */
export function checkVersion(version: number | undefined): number | undefined {
  if (version === undefined || (Number.isSafeInteger(version) && version >= 0)) return version
  throw invalid(`version ${formatValue(version)}: must be a whole number of at least 0`)
}

/** @throws SandglassError `invalid_request`. */
export function checkMimeType(mimeType: string): string {
  if (typeof mimeType === 'string' && mimeType.length <= MAX_MIME && MIME.test(mimeType)) return mimeType
  throw invalid(`mimeType ${formatValue(mimeType)}: must be a MIME type, such as text/plain or text/csv; charset=utf-8`)
}

/** @throws SandglassError `invalid_request`. */
export function checkSession(session: ArtifactSession): ArtifactSession {
  if (typeof session !== 'object' || session === null) {
    throw invalid(`session: must be an object with ${SESSION_KEYS.join(', ')}, not ${formatValue(session)}`)
  }
  for (const [key, value] of Object.entries(session)) {
    if (!SESSION_KEYS.includes(key))
      throw invalid(`session: unknown key ${formatValue(key)}; choose one of: ${SESSION_KEYS.join(', ')}`)
    if (value === undefined) continue
    if (typeof value !== 'string' || !value.isWellFormed() || Buffer.byteLength(value) > MAX_ID_BYTES) {
      throw invalid(`session.${key} ${formatValue(value)}: must be text of at most ${MAX_ID_BYTES} bytes`)
    }
  }
  return session
}

function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'must be a string'
  const path = name.startsWith(USER_PREFIX) ? name.slice(USER_PREFIX.length) : name
  if (path === '') return 'it is empty'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `it has more than ${MAX_NAME_BYTES} bytes`
  if (UNPRINTABLE.test(name)) return 'it has a character that cannot be printed'
  if (path.includes('\\')) return 'it has a backslash; separate its parts with /'
  if (path.split('/').some((one) => one === '' || one === '.' || one === '..'))
    return 'it must be a relative path without empty parts, . and ..'
  return VERSION_SUFFIX.test(name) ? 'it ends like a version; NAME@1 is version 1 of NAME' : undefined
}

function invalid(message: string): SandglassError {
  return new SandglassError('invalid_request', message)
}
