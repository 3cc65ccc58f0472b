import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// `./go web` proxies to the `greenroom serve` that runs; its Host and Origin checks see its own address.
const server = process.env.GREENROOM_SERVER ?? 'http://127.0.0.1:8760';
const proxy = {
  target: server,
  changeOrigin: true,
  headers: { origin: server },
};

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: '../src/greenroom/http/page',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    reportCompressedSize: false,
    rolldownOptions: { checks: { pluginTimings: false } },
    target: 'es2022',
  },
  server: { host: '127.0.0.1', port: 5173, strictPort: true, proxy: { '/api': proxy, '/login': proxy } },
});
