import './styles/tokens.css';
import './styles/base.css';
import './shell/shell.css';
import { QueryClientProvider } from '@tanstack/react-query';
import i18next from 'i18next';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { client } from './api/queries';
import { stream } from './api/stream';
import { startLanguage } from './i18n';
import { App } from './shell/App';
import { startNotices } from './views/inbox/notices';
import { applyTheme } from './state/setting';
import { TooltipProvider } from './ui';

// A tab that is open while the page is replaced by a newer one asks for files that are gone: read the page again, once.
const RELOADED = 'greenroom.reloaded';
window.addEventListener('vite:preloadError', (event) => {
  const before = Number(sessionStorage.getItem(RELOADED) ?? 0);
  if (Date.now() - before < 10_000) return;
  event.preventDefault();
  sessionStorage.setItem(RELOADED, String(Date.now()));
  window.location.reload();
});

applyTheme();
await startLanguage();
stream.start();
i18next.on('languageChanged', () => {
  void client.invalidateQueries();
  stream.begin();
});
startNotices();
createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <TooltipProvider delayDuration={350}>
        <App />
      </TooltipProvider>
    </QueryClientProvider>
  </StrictMode>,
);
