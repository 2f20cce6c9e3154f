import { errnoOf, type ErrorCode, messageOf, SandglassError } from '../../errors/index.ts'

/** The HTTP status of a refusal, or undefined. */
export function statusOf(error: unknown): number | undefined {
  const status = (error as { statusCode?: unknown } | null)?.statusCode
  return typeof status === 'number' ? status : undefined
}

/** Makes the error for a daemon that did not answer in time. */
export function timeoutError(address: string, what: string, timeoutMs: number): SandglassError {
  return new SandglassError(
    'docker_unreachable',
    `Docker at ${address} did not answer within ${timeoutMs} ms to the request to ${what}; check that a Docker daemon runs there and responds`,
  )
}

/** Maximum length of a quoted answer: a server that is not a daemon may answer with a page. */
const MAX_TEXT = 1000

/** Makes the error of a failed request to the daemon, with a code and a remedy. */
export function explainError(error: unknown, what: string, address: string): SandglassError {
  const text = messageOf(error).trim().slice(0, MAX_TEXT)
  const makeError = (code: ErrorCode, message: string): SandglassError =>
    new SandglassError(code, message, { cause: error })
  if (isTlsError(error)) {
    return makeError(
      'docker_tls',
      `no secure connection to Docker at ${address}: ${text}; check ca, cert and key (option docker.tls, or ` +
        'DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH), and that the daemon serves TLS on this port',
    )
  }
  if (statusOf(error) === undefined) return makeError(...describeConnectionError(error, text, address))
  const known = DAEMON_ERRORS.find(([pattern]) => pattern.test(text))
  if (known !== undefined) return makeError(known[1], `${text}; ${known[2]}`)
  if (statusOf(error) === 403)
    return makeError(
      'docker_permission',
      `Docker at ${address} refuses to ${what}: ${text}; check that a proxy or authorization plugin of the daemon allows it`,
    )
  return makeError('sandbox_setup_failed', `Docker could not ${what}: ${text}`)
}

/**
 * Makes the error of a container that ended before its harness was ready, from its stderr; undefined if the stderr is not
 * recognized.
 */
export function explainOutput(stderr: string, image: string, cause: unknown): SandglassError | undefined {
  const known = STDERR_ERRORS.find(([pattern]) => pattern.test(stderr))
  if (known === undefined) return undefined
  return new SandglassError(known[1], `the image ${image} ${known[2]}: ${stderr.trim()}; ${known[3]}`, { cause })
}

function describeConnectionError(error: unknown, text: string, address: string): [ErrorCode, string] {
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
    `no Docker daemon at ${address} (${text}): start it (systemctl start docker), or set DOCKER_HOST to its address`,
  ]
}

const CHOOSE_PYTHON = 'choose an image with Python 3.10 or later, or set the option python'
const CHOOSE_IMAGE = "pull the image for the daemon's CPU architecture"

/** Refusals of a daemon: pattern, code, remedy. */
const DAEMON_ERRORS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/no space left on device/i, 'no_space', 'free some of the disk of the daemon (docker system prune)'],
  [
    /no such image/i,
    'image_missing',
    'docker pull it, or build an image with python3: docs/docker.md shows a Dockerfile of two lines',
  ],
  [
    /unknown (or invalid )?runtime/i,
    'runtime_unknown',
    "register it in the daemon's configuration (docs/docker.md), or leave out the option runtime",
  ],
  [
    /unable to retrieve OCI runtime error.*fork\/exec/i,
    'runtime_unknown',
    "the program of the runtime is not on the daemon's machine: install it, or correct its path (docs/docker.md)",
  ],
  [/exec format error/i, 'architecture_unsupported', CHOOSE_IMAGE],
  [
    /executable file not found|exec: .*(no such file|permission denied|is a directory)/i,
    'python_missing',
    CHOOSE_PYTHON,
  ],
  [
    /bind source path does not exist/i,
    'mount_refused',
    'the daemon sees other files than this process: map the paths with the option hostPathMap',
  ],
]

/** The stderr of a container whose Python did not start: pattern, code, phrase, remedy. */
const STDERR_ERRORS: readonly (readonly [RegExp, ErrorCode, string, string])[] = [
  [/exec format error/, 'architecture_unsupported', 'is made for another CPU architecture', CHOOSE_IMAGE],
  [/^exec .*(no such file|permission denied)/m, 'python_missing', 'has a Python that cannot be started', CHOOSE_PYTHON],
  [/sandglass needs Python 3\.10/, 'python_missing', 'has a Python that is too old', CHOOSE_PYTHON],
  [/^Unknown option: -X/m, 'python_missing', 'has a Python that is too old', CHOOSE_PYTHON],
]

/** Codes of OpenSSL for invalid certificates, and of Node for other TLS errors. */
const TLS_CODE =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/

function isTlsError(error: unknown): boolean {
  return TLS_CODE.test(errnoOf(error) ?? '') || /HTTP request to an HTTPS server/i.test(messageOf(error))
}
