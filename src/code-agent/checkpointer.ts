import { messageOf, SandglassError } from '../errors/index.ts'

/** A checkpointer of LangGraph: any subclass of its `BaseCheckpointSaver`. */
export interface Checkpointer {
  getTuple(config: object): Promise<object | undefined>
  list(config: object, options?: object): AsyncGenerator<object>
  put(config: object, checkpoint: object, metadata: object, newVersions: object): Promise<object>
  putWrites(config: object, writes: object[], taskId: string, taskPath?: string): Promise<void>
  deleteThread(threadId: string): Promise<void>
}

const METHODS = ['getTuple', 'list', 'put', 'putWrites', 'deleteThread'] as const

/** @throws TypeError if the value is not a checkpointer. */
export function checkCheckpointer(given: unknown): void {
  const isOne =
    typeof given === 'object' &&
    given !== null &&
    METHODS.every((name) => typeof Reflect.get(given, name) === 'function')
  if (!isOne)
    throw new TypeError(
      'createCodeAgent: checkpointer: must be a checkpointer of LangGraph, such as new MemorySaver() or SqliteSaver.fromConnString(path)',
    )
}

/** Wraps a checkpointer so that its failures have the code `checkpointer_failed`. */
export function withTypedErrors<T extends Checkpointer>(checkpointer: T): T {
  return new Proxy(checkpointer, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      // Called on the target, because savers may have private fields.
      const call = (...args: unknown[]): unknown => Reflect.apply(value, target, args)
      if (name === 'getTuple' || name === 'put' || name === 'putWrites')
        return async (...args: unknown[]) => {
          try {
            return await call(...args)
          } catch (error) {
            throw checkpointerError(error)
          }
        }
      return call
    },
  })
}

function checkpointerError(error: unknown): SandglassError {
  if (error instanceof SandglassError) return error
  const message = `the checkpointer failed: ${messageOf(error)}. Nothing is run without a record: call resume() when it works again`
  return new SandglassError('checkpointer_failed', message, { cause: error })
}
