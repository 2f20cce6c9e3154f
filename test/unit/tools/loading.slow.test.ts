import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const DOOR = join(import.meta.dirname, '../../../src/tools/index.ts')

/** The large packages that a fresh process has loaded after `code`. */
function loadedBy(code: string): unknown {
  const script = `
    import { registerHooks } from 'node:module'
    const seen = new Set()
    registerHooks({
      load(url, context, next) {
        const found = /node_modules\\/(ajv-formats|ajv|ai|@langchain\\/core|@modelcontextprotocol\\/client)\\//.exec(url)
        if (found) seen.add(found[1])
        return next(url, context)
      },
    })
    const { defineTool, prepareTools, connectMcp } = await import(${JSON.stringify(DOOR)})
    const { z } = await import('zod')
    const prepare = (input) => prepareTools([defineTool({ name: 'f', description: '', input, execute: () => 1 })])
    ${code}
    console.log(JSON.stringify([...seen].sort()))
  `
  const node = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  })
  if (node.status !== 0) throw new Error(node.stderr)
  return JSON.parse(node.stdout)
}

test.each<[string, string, string[]]>([
  ['importing the room', '', []],
  ['a tool with a schema of zod', 'prepare(z.object({}))', []],
  ['a tool with JSON Schema', 'prepare({ type: "object" })', ['ajv', 'ajv-formats']],
  [
    'a connection to an MCP server',
    'await connectMcp({ command: "/nonexistent" }).catch(() => undefined)',
    ['@modelcontextprotocol/client'],
  ],
])('%%s loads only the packages that it needs', (_what, code, packages) => {
  expect(loadedBy(code)).toEqual(packages)
})

test('a connection names its missing package', () => {
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({
      resolve(specifier, context, next) {
        return next(specifier.startsWith('@modelcontextprotocol') ? 'not-installed' : specifier, context)
      },
    })
    const { connectMcp } = await import(${JSON.stringify(DOOR)})
    const { code, message } = await connectMcp({ url: 'http://127.0.0.1:1' }).catch((error) => error)
    console.log(JSON.stringify({ code, message }))
  `
  const node = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  expect({ stderr: node.stderr, answer: JSON.parse(node.stdout || 'null') as unknown }).toEqual({
    stderr: '',
    answer: {
      code: 'mcp_client_missing',
      message: 'MCP servers need the package @modelcontextprotocol/client: npm install @modelcontextprotocol/client',
    },
  })
})
