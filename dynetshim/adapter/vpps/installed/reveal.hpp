// Reading what DyNet's classes keep private.
#ifndef VPPS_INSTALLED_REVEAL_HPP
#define VPPS_INSTALLED_REVEAL_HPP

namespace vpps {
namespace installed {

// Naming a private member as the argument of an explicit instantiation is allowed, and that is
// where these pointers come from.
template <class Tag> struct hidden { static typename Tag::member pointer; };
template <class Tag> typename Tag::member hidden<Tag>::pointer;
template <class Tag, typename Tag::member M> struct reveal {
  struct setter {
    setter() { hidden<Tag>::pointer = M; }
  };
  static setter set;
};
template <class Tag, typename Tag::member M> typename reveal<Tag, M>::setter reveal<Tag, M>::set;

#define VPPS_REVEAL(Class, Type, name)                                                             \
  struct Class##_##name {                                                                          \
    typedef Type dynet::Class::*member;                                                            \
  };                                                                                               \
  template struct reveal<Class##_##name, &dynet::Class::name>;
#define VPPS_HIDDEN(object, Class, name) ((object).*hidden<Class##_##name>::pointer)

} // namespace installed
} // namespace vpps
#endif
