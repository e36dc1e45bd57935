// A part of a page whose code is loaded when it is first shown. Without a network, it says so, and loads when it is back.
import {
  Component,
  type ComponentType,
  lazy,
  type LazyExoticComponent,
  type ReactNode,
  useEffect,
  useEffectEvent,
} from "react";

import type { RouteComponent } from "@tanstack/react-router";

import { CodeLoadError, loadCode } from "../api/load-code";
import { ErrorPanel } from "../design/components/error-panel";
import { showToast } from "../design/components/toast";
import { useRetryWhenReachable } from "./use-retry-when-reachable";

type LoadPart<P> = () => Promise<{ default: ComponentType<P> }>;
type RenderFailure = (error: CodeLoadError, retry: () => void, isRepeated: boolean) => ReactNode;

/** `title`: what it is in a message, such as "The chart". It needs a `Suspense` around it. */
export function lazyPart<P extends object>(title: string, load: LoadPart<P>): ComponentType<P> {
  const part = new Part(load);
  return function LazyPart(props: P) {
    return (
      <PartBoundary
        part={part}
        renderFailure={(error, retry, isRepeated) => (
          <FailurePanel title={title} error={error} isRepeated={isRepeated} onRetry={retry} />
        )}
      >
        {(Content) => <Content {...props} />}
      </PartBoundary>
    );
  };
}

/** A page of the router. Without a network it says so; if the server has a newer version, the browser reloads it once. */
export function lazyPage(load: LoadPart<object>): RouteComponent {
  const part = new Part(load);
  function LazyPage() {
    return (
      <PartBoundary
        part={part}
        renderFailure={(error, retry, isRepeated) =>
          error.isOffline || wasReloaded() ? (
            <FailurePanel title="The page" error={error} isRepeated={isRepeated} onRetry={retry} />
          ) : (
            <Reload />
          )
        }
      >
        {(Content) => <Content />}
      </PartBoundary>
    );
  }
  // The router waits for this before each change of the address. A failure is reported by the page, not here.
  let isLoaded = false;
  LazyPage.preload = async () => {
    if (!isLoaded) {
      isLoaded = await loadCode(load).then(
        () => true,
        () => false,
      );
    }
  };
  return LazyPage;
}

interface DialogProps {
  onOpenChange: (isOpen: boolean) => void;
}

/** A dialog that closes again, with a message, if its code cannot be loaded. */
export function lazyDialog<P extends DialogProps>(title: string, load: LoadPart<P>): ComponentType<P> {
  const part = new Part(load);
  return function LazyDialog(props: P) {
    return (
      <PartBoundary
        part={part}
        renderFailure={(error) => (
          <FailureMessage
            title={title}
            error={error}
            onShown={() => {
              props.onOpenChange(false);
            }}
          />
        )}
      >
        {(Content) => <Content {...props} />}
      </PartBoundary>
    );
  };
}

/** React keeps the result of `lazy`, so a further attempt needs a new one. */
class Part<P> {
  component: LazyExoticComponent<ComponentType<P>>;
  readonly #load: LoadPart<P>;

  constructor(load: LoadPart<P>) {
    this.#load = load;
    this.component = this.#create();
  }

  reset(): void {
    this.component = this.#create();
  }

  #create(): LazyExoticComponent<ComponentType<P>> {
    return lazy(() => loadCode(this.#load));
  }
}

interface BoundaryProps<P> {
  part: Part<P>;
  renderFailure: RenderFailure;
  children: (Content: ComponentType<P>) => ReactNode;
}

interface BoundaryState {
  error: Error | null;
  isRepeated: boolean;
}

class PartBoundary<P> extends Component<BoundaryProps<P>, BoundaryState> {
  override state: BoundaryState = { error: null, isRepeated: false };

  static getDerivedStateFromError(error: unknown): Partial<BoundaryState> {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidCatch(error: unknown): void {
    if (error instanceof CodeLoadError) {
      this.props.part.reset();
    }
  }

  override render(): ReactNode {
    const { error, isRepeated } = this.state;
    if (error === null) {
      return this.props.children(this.props.part.component);
    }
    if (error instanceof CodeLoadError) {
      const retry = (): void => {
        this.setState({ error: null, isRepeated: true });
      };
      return this.props.renderFailure(error, retry, isRepeated);
    }
    // Not about loading: the page shows it.
    throw error;
  }
}

const RELOADED_AT = "footplate.reloaded-at";
const RELOAD_AGAIN_AFTER_MS = 60_000;

function wasReloaded(): boolean {
  return Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) < RELOAD_AGAIN_AFTER_MS;
}

function Reload() {
  useEffect(() => {
    sessionStorage.setItem(RELOADED_AT, String(Date.now()));
    location.reload();
  }, []);
  return null;
}

interface FailurePanelProps {
  title: string;
  error: CodeLoadError;
  /** A further attempt does not help: the browser remembers the failure, or the server has another version. */
  isRepeated: boolean;
  onRetry: () => void;
}

function FailurePanel({ title, error, isRepeated, onRetry }: FailurePanelProps) {
  useRetryWhenReachable(error.isOffline, onRetry);
  const needsReload = isRepeated && !error.isOffline;
  return (
    <ErrorPanel
      className="m-4"
      title={`${title} could not be loaded`}
      error={error}
      retryLabel={needsReload ? "Reload the page" : "Try again"}
      onRetry={() => {
        if (needsReload) {
          location.reload();
        } else {
          onRetry();
        }
      }}
    />
  );
}

interface FailureMessageProps {
  title: string;
  error: CodeLoadError;
  onShown: () => void;
}

function FailureMessage({ title, error, onShown }: FailureMessageProps) {
  const show = useEffectEvent(() => {
    showToast({ title: `${title} could not be loaded`, description: error.message, tone: "failed" });
    onShown();
  });
  useEffect(() => {
    show();
  }, []);
  return null;
}
