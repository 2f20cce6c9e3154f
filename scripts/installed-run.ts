import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The supported versions of Node. Each is an npm package without an install script. */
const NODES = ['22', '24'] as const

/** Uses modules that are loaded on demand and that README's example does not cover: JSON Schema, Pyodide. */
const LAZY = `
import { createSandglass, defineTool } from 'sandglass'
const input = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const twice = defineTool({ name: 'twice', description: 'Doubles.', input, execute: ({ n }) => 2 * n })
for (const engine of ['local', 'pyodide']) {
  const sg = await createSandglass({ engine, poolSize: 1 })
  const { finalData, sandbox } = await sg.run('emit_result(twice(n=21))', { tools: [twice], policy: 'standard' })
  console.log(sandbox.engine, finalData)
  await sg.close()
}
`
const LAZY_OUTPUT = 'local 42\npyodide 42\n'

/** Installs the tarball as a user would and runs README's example from it, on every supported Node. */
export function runsInstalled(tarball: string, folder: string): boolean {
  return NODES.every((version) => {
    const place = join(folder, `node-${version}`)
    const node = `node-linux-${process.arch}`
    mkdirSync(place)
    writeFileSync(join(place, 'package.json'), '{"private":true,"type":"module"}')
    const { example, output } = readmeExample()
    writeFileSync(join(place, 'example.mjs'), example)
    writeFileSync(join(place, 'lazy.mjs'), LAZY)
    const installed = spawnSync(
      'npm',
      [
        'install',
        '--silent',
        '--no-audit',
        '--no-fund',
        tarball,
        'zod',
        `${node}@${version}`,
        `pyodide@${pyodideVersion()}`,
      ],
      {
        cwd: place,
        stdio: ['ignore', 'inherit', 'inherit'],
      },
    )
    if (installed.status !== 0)
      return reportProblem(`npm install of the tarball beside Node ${version} ended with ${installed.status}`)
    const program = join(place, 'node_modules', node, 'bin', 'node')
    for (const [script, expected] of [
      ['example.mjs', output],
      ['lazy.mjs', LAZY_OUTPUT],
    ] as const) {
      const ran = spawnSync(program, [script], { cwd: place, encoding: 'utf8' })
      if (ran.stdout !== expected)
        return reportProblem(`on Node ${version} ${script} printed\n${ran.stdout}${ran.stderr}instead of\n${expected}`)
    }
    console.log(`README's example, a tool with JSON Schema and Pyodide run from the tarball on Node ${version}`)
    return true
  })
}

/** The version that the engine needs. */
function pyodideVersion(): string {
  const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly peerDependencies: Readonly<Record<string, string>>
  }
  return peerDependencies['pyodide'] ?? 'latest'
}

function readmeExample(): { example: string; output: string } {
  const readme = readFileSync('README.md', 'utf8')
  const [, example = '', output = ''] = /## Use it\n+```ts\n(.*?)```\n+prints\n+```text\n(.*?)```/s.exec(readme) ?? []
  return { example, output }
}

function reportProblem(problem: string): false {
  console.error(`package: ${problem}`)
  return false
}
