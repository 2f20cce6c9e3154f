import { errnoOf, type ErrorCode, messageOf, SandglassError } from '../../errors/index.ts'

/** Maximum length of a quoted answer: a server that is no API server may answer with a page. */
const MAX_TEXT = 1000

/** The HTTP status of a refusal, or undefined. */
export function statusOf(error: unknown): number | undefined {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  return [code, statusCode].find((one): one is number => typeof one === 'number')
}

/** True if the API server says that it has no such object. */
export function isMissing(error: unknown): boolean {
  return error instanceof SandglassError && statusOf(error.cause) === 404
}

/** Makes the error for an API server that did not answer in time. */
export function timeoutError(server: string, what: string, timeoutMs: number): SandglassError {
  return new SandglassError(
    'kubernetes_unreachable',
    `the API server at ${server} did not answer within ${timeoutMs} ms to the request to ${what}`,
  )
}

/** Makes the error of a failed request, with the reason that Kubernetes gives. */
export function explainError(error: unknown, what: string, server: string): SandglassError {
  const status = statusOf(error)
  const text = reasonOf(error).slice(0, MAX_TEXT)
  const makeError = (code: ErrorCode, message: string): SandglassError =>
    new SandglassError(code, message, { cause: error })
  if (status === undefined) {
    const errno = errnoOf(error) ?? errnoOf((error as { cause?: unknown } | null)?.cause)
    const why = errno === undefined || text.includes(errno) ? text : `${text} (${errno})`
    return makeError(
      'kubernetes_unreachable',
      `no API server at ${server}: ${why}; check the context, or the option kubernetes.kubeconfig`,
    )
  }
  if (/RuntimeClass "[^"]*" not found/.test(text))
    return makeError('runtime_unknown', `${text}; create the RuntimeClass`)
  if (/exceeded quota|forbidden: (violates PodSecurity|failed quota|maximum|minimum)|admission webhook/.test(text)) {
    return makeError('kubernetes_refused', `the cluster refuses to ${what}: ${text}`)
  }
  if (status === 401 || status === 403) {
    return makeError(
      'kubernetes_permission',
      `the API server at ${server} refuses to ${what}: ${text}; docs/kubernetes.md lists the verbs that the account needs`,
    )
  }
  if (status === 429 || status >= 500) {
    return makeError('kubernetes_unreachable', `the API server at ${server} could not ${what}: ${text}`)
  }
  return makeError('sandbox_setup_failed', `Kubernetes could not ${what}: ${text}`)
}

/** The message in the answer of the API server, else that of the error. */
function reasonOf(error: unknown): string {
  const body = (error as { body?: unknown } | null)?.body
  if (typeof body === 'string') {
    try {
      return messageIn(JSON.parse(body)) ?? body
    } catch {
      return body
    }
  }
  return messageIn(body) ?? messageOf(error).trim()
}

function messageIn(body: unknown): string | undefined {
  const message = (body as { message?: unknown } | null | undefined)?.message
  return typeof message === 'string' ? message : undefined
}
