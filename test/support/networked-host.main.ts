/**
 * A host in a container, whose sandbox is another container on the same private network: `networked-host.main.ts NETWORK IMAGE SCRIPT`.
 * Prints its own address, and the outcome of the script.
 */
import { networkInterfaces } from 'node:os'
import { z } from 'zod'
import { cliEngine } from '../../examples/engine/cli-engine.ts'
import { createSandglass, defineTool } from '../../src/index.ts'

const [network = '', image = '', script = ''] = process.argv.slice(2)
const add = defineTool({
  name: 'add',
  description: 'Adds.',
  input: z.object({ a: z.int(), b: z.int() }),
  output: z.int(),
  effect: 'read',
  execute: ({ a, b }) => a + b,
})

await using sg = await createSandglass({ engine: cliEngine({ program: 'docker', image, network }), poolSize: 1 })
const { error, finalData, stdout, toolCalls, sandbox } = await sg.run(script, {
  tools: [add],
  toolTransport: 'websocket',
})
const host = networkInterfaces()['eth0']?.find(({ family }) => family === 'IPv4')?.address
console.log(JSON.stringify({ host, error, finalData, stdout, calls: toolCalls.length, network: sandbox?.network }))
