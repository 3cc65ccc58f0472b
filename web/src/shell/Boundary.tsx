import { Component, type ReactNode } from 'react';
import { Problem } from '../ui';

/** A view that breaks says so; the rest of the page stays. */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  state = { error: null as unknown };
  static getDerivedStateFromError(error: unknown) {
    return { error };
  }
  render() {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="pad">
        <Problem error={this.state.error} onRetry={() => this.setState({ error: null })} />
      </div>
    );
  }
}
