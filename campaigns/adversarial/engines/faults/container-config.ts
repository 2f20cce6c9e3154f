import assert from 'node:assert/strict'
import { docker } from '../../../../test/support/containers.ts'
import { readCases } from '../../driver/case.ts'
import type { CaseContext } from '../../driver/case-state.ts'
import { daemonOf } from '../docker.ts'

/** FLT-031: checks every field that the case lists, as the daemon reports it for a pooled container. */
export async function hardensContainer({ engine }: CaseContext): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, limits: { cpus: 0.5 } })
  const { sandbox } = await sandglass.run('emit_result(1)')
  const [config] = JSON.parse(docker(daemonOf(engine), 'inspect', sandbox.id)) as Inspected[]
  if (config === undefined) throw new Error('the daemon does not know the container')
  const wanted = readCases().find(({ id }) => id === 'FLT-031')?.script_or_input as { inspect_fields: object }
  assert.deepEqual(
    Object.keys(wanted.inspect_fields).toSorted(),
    Object.keys(FIELDS).toSorted(),
    'FIELDS must check exactly the fields that the case lists',
  )
  const wrong = Object.entries(FIELDS).filter(([path, holds]) => !holds(valueAt(config, path), config))
  assert.deepEqual(
    wrong.map(([path]) => [path, valueAt(config, path)]),
    [],
  )
}

type Inspected = Readonly<Record<string, unknown>>

const FIELDS: Readonly<Record<string, (value: unknown, all: Inspected) => boolean>> = {
  'HostConfig.Privileged': (value) => value === false,
  'HostConfig.CapDrop': (value) => same(value, ['ALL']),
  'HostConfig.CapAdd': (value) => value === null,
  'HostConfig.SecurityOpt': (value) => same(value, ['no-new-privileges:true']),
  'HostConfig.ReadonlyRootfs': (value) => value === true,
  'HostConfig.NetworkMode': (value) => value === 'none',
  'HostConfig.PidsLimit': (value) => Number(value) > 0,
  'HostConfig.Memory': (value) => Number(value) > 0,
  'HostConfig.MemorySwap': (value, all) => value === valueAt(all, 'HostConfig.Memory'),
  'HostConfig.NanoCpus': (value) => value === 5e8,
  'HostConfig.Binds': (value, all) => value === null && same(valueAt(all, 'Mounts'), []),
  // Scripts start programs from the workspace, so noexec is not required.
  'HostConfig.Tmpfs': (value) =>
    Object.values(value as Record<string, string>).every((options) =>
      ['nosuid', 'nodev', 'size='].every((option) => options.split(',').some((given) => given.startsWith(option))),
    ),
  'HostConfig.Ulimits': (value) =>
    (value as { Name: string; Hard: number }[]).some(({ Name, Hard }) => Name === 'core' && Hard === 0) &&
    (value as { Name: string; Hard: number }[]).some(({ Name, Hard }) => Name === 'nofile' && Hard > 0),
  'HostConfig.LogConfig.Type': (value) => value === 'none',
  'HostConfig.IpcMode': (value) => value === 'private',
  'HostConfig.UsernsMode': (value) => value === '',
  'Config.User': (value) => /^[1-9]\d*:[1-9]\d*$/.test(String(value)),
  // The broker reaps processes itself. It must be PID 1, because the signals of a script cannot end PID 1 (docs/limitations/docker.md).
  'HostConfig.Init': (value) => value === false,
  'HostConfig.AutoRemove': (value) => typeof value === 'boolean',
}

function valueAt(config: Inspected, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Inspected | undefined)?.[name], config)
}

function same(found: unknown, wanted: unknown): boolean {
  return JSON.stringify(found) === JSON.stringify(wanted)
}
