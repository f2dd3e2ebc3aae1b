// Functions of the module that lock their first argument.
#pragma once
#include <functional>

#include "../base/alone.hpp"

namespace hpc {

// Wrap a function or method, so that only one thread at a time is in its simulation.
template <class S, class R, class... A, class F>
auto inside(F f) {
  return [f](S& s, A... a) -> R {
    const Alone::Inside alone(s);
    return std::invoke(f, s, a...);
  };
}
template <class S, class R, class... A>
auto alone(R (*f)(S&, A...)) {
  return inside<S, R, A...>(f);
}
template <class S, class R, class... A>
auto alone(R (S::*f)(A...)) {
  return inside<S, R, A...>(f);
}
template <class S, class R, class... A>
auto alone(R (S::*f)(A...) const) {
  return inside<const S, R, A...>(f);
}

}  // namespace hpc
