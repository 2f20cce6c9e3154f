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
}

test('doctor says which cluster it is, with which runtime, and what counts processes', () => {
  expect(kubernetesModule.reportLines(PROBES)).toEqual([
    ['python', '3.12.7 (python:3.12-slim)'],
    ['cluster', 'https://10.0.0.1:6443 (context production), Kubernetes v1.34.4'],
    ['namespace', 'sandglass'],
    ['kernel', '6.18.0'],
    ['runtime', "the cluster's own"],
    ['processes', 'counted by RLIMIT_NPROC of the uid of the sandbox'],
  ])
  const lines = kubernetesModule.reportLines({ ...PROBES, server_version: null, runtime_class: 'kata' })
  expect(lines[1]).toEqual(['cluster', 'https://10.0.0.1:6443 (context production), Kubernetes of unknown version'])
  expect(lines[4]).toEqual(['runtime', 'RuntimeClass kata'])
})
