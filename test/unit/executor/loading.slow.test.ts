import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../../..')

test('a run over a WebSocket without the package ws names it, and does not touch the sandbox', () => {
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({
      resolve: (specifier, context, next) => next(specifier === 'ws' ? 'not-installed' : specifier, context),
    })
    const { ScriptExecutor } = await import(${JSON.stringify(`${ROOT}/src/executor/index.ts`)})
    const { bridgedTools, defineTool, prepareTools } = await import(${JSON.stringify(`${ROOT}/src/tools/index.ts`)})
    const { replayChannel } = await import(${JSON.stringify(`${ROOT}/src/testing/index.ts`)})
    const { z } = await import('zod')
    const tool = defineTool({ name: 'f', description: 'F.', input: z.object({}), execute: () => 1 })
    const sandbox = replayChannel([])
    const request = {
      sandbox,
      script: '',
      tools: bridgedTools(prepareTools([tool])),
      toolEndpoint: { host: '127.0.0.1', connect: () => { throw new Error('connected') } },
    }
    const { code, message } = await new ScriptExecutor().run(request).catch((error) => error)
    console.log(JSON.stringify({ code, message, sent: sandbox.sent, destroyed: sandbox.destroyed }))
  `
  const node = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8', cwd: ROOT })
  expect({ stderr: node.stderr, answer: JSON.parse(node.stdout || 'null') as unknown }).toEqual({
    stderr: '',
    answer: {
      code: 'websocket_client_missing',
      message: 'toolTransport: websocket needs the package ws: npm install ws',
      sent: [],
      destroyed: false,
    },
  })
})
