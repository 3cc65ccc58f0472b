import './styles/tokens.css';
import './styles/base.css';
import './shell/shell.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { client } from './api/queries';
import { stream } from './api/stream';
import { startLanguage } from './i18n';
import { App } from './shell/App';
import { startNotices } from './views/inbox/notices';
import { applyTheme } from './state/setting';
import { TooltipProvider } from './ui';

applyTheme();
await startLanguage();
stream.start();
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
