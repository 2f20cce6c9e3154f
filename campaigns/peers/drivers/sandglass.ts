import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { MachineEngine } from '../../../test/support/walls.ts'
import type * as Sandglass from '../../../src/index.ts'
import { z } from 'zod'
import { type Peer, serve } from './serve.ts'

const BUILT = join(import.meta.dirname, '../../../dist/index.js')

/** Drives Sandglass: `sandglass.ts ENGINE [INDEX]`, INDEX is the built module, or the sources in a test. */
async function main(): Promise<void> {
  const [engine = 'local', index = BUILT] = process.argv.slice(2)
  const { createSandglass, defineTool } = await load(index)
  const add = defineTool({
    name: 'add',
    description: 'Adds two numbers.',
    effect: 'read',
    input: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => a + b,
  })
  const peer: Peer = {
    async open(seconds) {
      const sg = await createSandglass({ engine: engine as MachineEngine })
      const run = async (code: string, tools: (typeof add)[]): Promise<string> => {
        const limits = seconds === undefined ? {} : { limits: { executionTimeoutSec: seconds } }
        const result = await sg.run(code, { ...limits, tools })
        if (result.status !== 'completed' && result.status !== 'step-done') {
          throw new Error(`${result.status}: ${result.error ?? ''}`)
        }
        return result.stdout
      }
      return { run: (code) => run(code, []), runWithTools: (code) => run(code, [add]), close: () => sg.close() }
    },
  }
  await serve(peer)
}

async function load(index: string): Promise<typeof Sandglass> {
  if (!existsSync(index)) throw new Error('npm run build first')
  return (await import(pathToFileURL(index).href)) as typeof Sandglass
}

await main()
