// Functions for the module that are inside what they are given alone.
#pragma once
#include <functional>

#include "../base/alone.hpp"

namespace hpc {

// A function, or a method, as one that is inside its simulation alone.
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
