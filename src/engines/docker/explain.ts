import { errnoOf, type ErrorCode, messageOf, SandglassError } from '../../errors/index.ts'

/** Status of an answer that refuses, or undefined. */
export function statusOf(error: unknown): number | undefined {
  const status = (error as { statusCode?: unknown } | null)?.statusCode
  return typeof status === 'number' ? status : undefined
}

/** The error for a daemon that gave no answer in time. */
export function silent(address: string, what: string, timeoutMs: number): SandglassError {
  return new SandglassError(
    'docker_unreachable',
    `Docker at ${address} did not answer within ${timeoutMs} ms when it was to ${what}; is it the daemon, and does it live?`,
  )
}

/** A server that is no daemon may answer with a page. */
const MAX_TEXT = 1000

/** What failed while the daemon was to do something, with a code and what to do next. */
export function explained(error: unknown, what: string, address: string): SandglassError {
  const text = messageOf(error).trim().slice(0, MAX_TEXT)
  const made = (code: ErrorCode, message: string): SandglassError => new SandglassError(code, message, { cause: error })
  if (isTlsTrouble(error)) {
    return made(
      'docker_tls',
      `no secure connection to Docker at ${address}: ${text}; check ca, cert and key (option docker.tls, or ` +
        'DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH), and that the daemon serves TLS on this port',
    )
  }
  if (statusOf(error) === undefined) return made(...connectionTrouble(error, text, address))
  const known = ANSWERS.find(([pattern]) => pattern.test(text))
  if (known !== undefined) return made(known[1], `${text}; ${known[2]}`)
  if (statusOf(error) === 403) return made('docker_permission', `Docker at ${address} refuses to ${what}: ${text}`)
  return made('sandbox_setup_failed', `Docker could not ${what}: ${text}`)
}

/** What a container that ended before its harness was ready said on its standard error; undefined when that tells nothing. */
export function explainedWords(words: string, image: string, cause: unknown): SandglassError | undefined {
  const known = WORDS.find(([pattern]) => pattern.test(words))
  if (known === undefined) return undefined
  return new SandglassError(known[1], `the image ${image} ${known[2]}: ${words.trim()}; ${known[3]}`, { cause })
}

function connectionTrouble(error: unknown, text: string, address: string): [ErrorCode, string] {
  const errno = errnoOf(error)
  if (errno === 'EACCES' || errno === 'EPERM') {
    return [
      'docker_permission',
      `no permission on Docker's socket (${address}): add the user to the group docker and log in again, or use a ` +
        'rootless daemon and set DOCKER_HOST',
    ]
  }
  return [
    'docker_unreachable',
    `no Docker daemon at ${address} (${text}): start it (systemctl start docker), or set DOCKER_HOST to where it runs`,
  ]
}

const OTHER_PYTHON = 'choose an image with Python 3.10 or later, or set the option python'
const OTHER_IMAGE = "pull the image for the daemon's kind of processor"

/** What a daemon says in its refusals: pattern, code, what to do. */
const ANSWERS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/no space left on device/i, 'no_space', 'free some of the disk of the daemon (docker system prune)'],
  [/no such image/i, 'image_missing', 'docker pull it, or make one here: sandglass image build'],
  [
    /unknown (or invalid )?runtime/i,
    'runtime_unknown',
    "register it in the daemon's configuration (docs/docker.md), or leave out the option runtime",
  ],
  [
    /unable to retrieve OCI runtime error.*fork\/exec/i,
    'runtime_unknown',
    "the program of the runtime is not on the daemon's machine: install it, or set its path right (docs/docker.md)",
  ],
  [/exec format error/i, 'architecture_unsupported', OTHER_IMAGE],
  [
    /executable file not found|exec: .*(no such file|permission denied|is a directory)/i,
    'python_missing',
    OTHER_PYTHON,
  ],
  [
    /bind source path does not exist/i,
    'mount_refused',
    'the daemon sees other files than this process: tell it with the option hostPathMap',
  ],
]

/** What is on the standard error of a container whose Python did not come up: pattern, code, words, what to do. */
const WORDS: readonly (readonly [RegExp, ErrorCode, string, string])[] = [
  [/exec format error/, 'architecture_unsupported', 'is made for another kind of processor', OTHER_IMAGE],
  [/^exec .*(no such file|permission denied)/m, 'python_missing', 'has a Python that cannot be started', OTHER_PYTHON],
  [/sandglass needs Python 3\.10/, 'python_missing', 'is too old', OTHER_PYTHON],
  [/^Unknown option: -X/m, 'python_missing', 'is too old', OTHER_PYTHON],
]

/** Codes of OpenSSL for certificates that do not hold, and of Node for the rest of TLS. */
const TLS_CODE =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/

function isTlsTrouble(error: unknown): boolean {
  return TLS_CODE.test(errnoOf(error) ?? '') || /HTTP request to an HTTPS server/i.test(messageOf(error))
}
