/** An answer with success, message and data; a script reads `.success`, `.message` and `.data`. */
export interface ToolResponse<T = unknown> {
  readonly success: boolean
  /** A message for people and models; may be empty. */
  readonly message: string
  /** `null` if there is none. */
  readonly data: T
}

/** Makes a {@link ToolResponse}. Default: success, no message and no data. */
export function toolResponse<T = null>(given: {
  success?: boolean
  message?: string
  data?: T
}): ToolResponse<T | null> {
  return { success: given.success ?? true, message: given.message ?? '', data: given.data ?? null }
}
