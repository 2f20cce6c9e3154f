import { z } from 'zod'
import { defineTool, type Tool } from '../../src/index.ts'

/** A cell that ends while one call waits, after others that succeeded, failed, were too late or were refused. */
export const UNCERTAIN_CALLS = `import os, threading
def try_to_pay(to):
    try: pay(to)
    except ToolError: pass
for to in ["works", "fails", "hangs", 5]: try_to_pay(to)
threading.Thread(target=try_to_pay, args=("waits",), daemon=True).start()
has_begun()
os._exit(1)`

/** The tools of {@link UNCERTAIN_CALLS}. */
export function uncertainTools(): Tool[] {
  const begun = Promise.withResolvers<void>()
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    effect: 'write',
    timeoutMs: 300,
    input: z.object({ to: z.string() }),
    execute: ({ to }) => {
      if (to === 'works') return 1
      if (to === 'fails') throw new Error('bank said 500')
      if (to === 'waits') begun.resolve()
      return Promise.withResolvers<number>().promise
    },
  })
  const hasBegun = defineTool({
    name: 'has_begun',
    description: 'Waits until the last payment has begun.',
    effect: 'read',
    input: z.object({}),
    execute: () => begun.promise,
  })
  return [pay, hasBegun]
}
