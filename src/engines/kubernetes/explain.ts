import { errnoOf, type ErrorCode, messageOf, SandglassError } from '../../errors/index.ts'

/** Maximum length of a quoted text: a server that is no API server may answer with a page. */
const MAX_TEXT = 1000

/** The HTTP status of a refusal, or undefined. */
export function statusOf(error: unknown): number | undefined {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  return [code, statusCode].find((one): one is number => typeof one === 'number')
}

/** The milliseconds after which a server wants to be asked again (`Retry-After` in seconds), or undefined. */
export function retryAfterOf(error: unknown): number | undefined {
  const { headers } = (error ?? {}) as { headers?: Readonly<Record<string, unknown>> }
  const text = headers?.['retry-after']
  return typeof text === 'string' && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined
}

/** Shortens a text of Kubernetes that stands in a message. */
export function quote(text: string): string {
  return text.trim().slice(0, MAX_TEXT)
}

/** True if the API server says that it has no such object. */
export function isMissing(error: unknown): boolean {
  return error instanceof SandglassError && statusOf(error.cause) === 404
}

/** True if a request was given up: it may still be served. */
export function isUncertain(error: unknown): boolean {
  return error instanceof SandglassError && ['aborted', 'kubernetes_unreachable'].includes(error.code)
}

/** Makes the error for an API server that did not answer in time. */
export function timeoutError(server: string, what: string, timeoutMs: number): SandglassError {
  return new SandglassError(
    'kubernetes_unreachable',
    `the API server at ${server} did not answer within ${timeoutMs} ms to the request to ${what}; ` +
      'check that the cluster answers (kubectl version), or raise kubernetes.apiTimeoutMs',
  )
}

/** Makes the error of a failed request, with the reason that Kubernetes gives. */
export function explainError(
  error: unknown,
  what: string,
  { server, context }: { readonly server: string; readonly context: string },
): SandglassError {
  const status = statusOf(error)
  const text = quote(reasonOf(error))
  const makeError = (code: ErrorCode, message: string): SandglassError =>
    new SandglassError(code, message, { cause: error })
  if (status === undefined) {
    const errno = errnoOf(error) ?? errnoOf((error as { cause?: unknown } | null)?.cause)
    const why = errno === undefined || text.includes(errno) ? text : `${text} (${errno})`
    return makeError(
      'kubernetes_unreachable',
      `no API server at ${server}: ${why}; check the context, or the option kubernetes.kubeconfig (--kubeconfig)`,
    )
  }
  if (/RuntimeClass "[^"]*" not found/.test(text))
    return makeError('runtime_unknown', `${text}; create the RuntimeClass`)
  if (/exceeded quota|forbidden: (violates PodSecurity|failed quota|maximum|minimum)|admission webhook/.test(text)) {
    return makeError('kubernetes_refused', `the cluster refuses to ${what}: ${text}`)
  }
  if (status === 401) {
    return makeError(
      'kubernetes_permission',
      `the API server at ${server} does not accept the credentials of the context ${context}: the token or certificate is ` +
        'invalid or expired; renew it in the kubeconfig, which is read again after each refusal',
    )
  }
  if (status === 403) {
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
  const message = messageOf(error).trim()
  // The client writes all headers of an answer that it cannot read.
  return messageIn(body) ?? (message.startsWith('HTTP-Code:') ? `it answered ${String(statusOf(error))}` : message)
}

function messageIn(body: unknown): string | undefined {
  const message = (body as { message?: unknown } | null | undefined)?.message
  return typeof message === 'string' ? message : undefined
}
