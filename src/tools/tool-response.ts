/** What a tool of the mission's documents answers; a script reads `.success`, `.message` and `.data`. */
export interface ToolResponse<T = unknown> {
  readonly success: boolean
  /** For people and models; empty where there is nothing to say. */
  readonly message: string
  /** `null` where there is none. */
  readonly data: T
}

/** A {@link ToolResponse}, from what is given of it: success, no message and no data where nothing is said. */
export function toolResponse<T = null>(given: {
  success?: boolean
  message?: string
  data?: T
}): ToolResponse<T | null> {
  return { success: given.success ?? true, message: given.message ?? '', data: given.data ?? null }
}
