import { expect, test } from 'vitest'
import { kubernetesModule } from '../../../../src/engines/kubernetes/index.ts'

const PROBES = {
  python_version: '3.12.7',
  image: 'python:3.12-slim',
  server: 'https://10.0.0.1:6443',
  server_version: 'v1.34.4',
  context: 'production',
  namespace: 'sandglass',
  kernel: '6.18.0',
  runtime_class: null,
  pids_counted_by: 'RLIMIT_NPROC of the uid of the sandbox',
  user_namespace: false,
}

test('doctor says which cluster it is, with which runtime, what counts processes, and whose users it has', () => {
  expect(kubernetesModule.reportLines(PROBES)).toEqual([
    ['python', '3.12.7 (python:3.12-slim)'],
    ['cluster', 'https://10.0.0.1:6443 (context production), Kubernetes v1.34.4'],
    ['namespace', 'sandglass'],
    ['kernel', '6.18.0'],
    ['runtime', "the cluster's own"],
    ['processes', 'counted by RLIMIT_NPROC of the uid of the sandbox'],
    ['users', 'no user namespace (option kubernetes.hostUsers)'],
  ])
  const other = { server_version: null, runtime_class: 'kata', user_namespace: true }
  const lines = kubernetesModule.reportLines({ ...PROBES, ...other })
  expect(lines[1]).toEqual(['cluster', 'https://10.0.0.1:6443 (context production), Kubernetes of unknown version'])
  expect(lines[4]).toEqual(['runtime', 'RuntimeClass kata'])
  expect(lines[6]).toEqual(['users', 'a user namespace (option kubernetes.hostUsers)'])
})
